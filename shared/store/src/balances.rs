//! Balances: the one mutable money item of a wallet.

use domain::ids::{TenantId, WalletId};
use domain::keys;
use domain::ledger::Balance;

use crate::error::classify;
use crate::item::{decode, encode, s};
use crate::ledger::WalletCreated;
use crate::{Store, StoreError};

impl Store {
    /// A wallet's balance, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_balance(&self, tenant: &TenantId, wallet: &WalletId) -> Result<Option<Balance>, StoreError> {
        let pk = keys::wallet_pk(tenant, wallet);
        let get = self.client.get_item().table_name(&self.names.balances).key("pk", s(pk)).consistent_read(true);
        let item = get.send().await.map(|output| output.item).map_err(|error| classify("get balance", &error))?;
        item.map(|item| decode("balance", item)).transpose()
    }

    /// Creates a wallet, once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_wallet(
        &self, tenant: &TenantId, wallet: &WalletId, balance: &Balance,
    ) -> Result<WalletCreated, StoreError> {
        let mut item = encode("balance", balance, &keys::wallet_pk(tenant, wallet), "")?;
        item.remove("sk"); // this table has no sort key
        match self.put_if_absent(&self.names.balances, item).await {
            Ok(None) => Ok(WalletCreated::Created),
            Ok(Some(old)) => Ok(WalletCreated::Exists(Box::new(decode("balance", old)?))),
            Err(error) => Err(classify("create wallet", &error)),
        }
    }
}
