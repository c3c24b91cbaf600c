//! Findings become cases: opened once, done at once where that is harmless, counted for the run and for the alarms.

use std::collections::BTreeMap;

use domain::reconcile::{CaseClass, CaseState, Decision, Finding, PartResult, Resolution, Run};
use runtime::App;
use store::StoreError;

use crate::apply::{self, Done};

/// Lines of what one part could not compare, at most.
const MAX_SKIPPED: usize = 100;

/// Who decides where no person does.
pub(crate) const RECONCILER: &str = "reconciler";

/// Records what one part finds.
pub(crate) struct Recorder<'a> {
    pub(crate) app: &'a App,
    pub(crate) run: &'a Run,
    pub(crate) result: PartResult,
    /// Cases that are left open, by class.
    open: BTreeMap<CaseClass, u64>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(app: &'a App, run: &'a Run) -> Self {
        Self { app, run, result: PartResult::default(), open: BTreeMap::new() }
    }

    /// Opens the finding's case, or finds it open; carries out what is automatic.
    pub(crate) async fn record(&mut self, finding: &Finding) -> Result<(), StoreError> {
        let (store, now_ms) = (&self.app.store, self.app.clock.now_ms());
        let mut case = store.open_case(finding, self.run.id.as_str(), now_ms).await?;
        if case.resolution == Some(Resolution::Dismissed) {
            return Ok(()); // a person let exactly this stand
        }
        // Before anything is done about it: a run that dies here still tells what it found.
        store.put_found(&self.run.id, &case.id, case.occurrence).await?;
        if case.state == CaseState::Open && case.action.is_automatic() {
            let (resolution, note) = match apply::automatic(self.app, &case).await? {
                Done::Did(note) => (Resolution::Applied, note),
                Done::Gone => (Resolution::Gone, "it was done meanwhile".to_owned()),
            };
            let (actor, reason) = (RECONCILER.to_owned(), format!("run {}", self.run.id));
            let decision = Decision { resolution, actor, reason, reference: None, note, decided_ms: now_ms };
            // Losing to another run is fine: the same was done and decided there.
            store.resolve_case(&case, &decision).await?;
            case = case.resolved(resolution);
        }
        tracing::warn!(run = %self.run.id, case = %case.id, class = %case.class, state = ?case.state, "reconciliation case");
        if case.state == CaseState::Open {
            *self.open.entry(case.class).or_default() += 1;
        }
        let count = self.result.classes.entry(case.class).or_default();
        count.found += 1;
        count.new += u64::from(case.opened_by == self.run.id.as_str());
        count.applied += u64::from(case.resolution == Some(Resolution::Applied));
        Ok(())
    }

    /// One log line for each class of which cases are left open: the metrics `ReconciliationCases` and `ChainsBroken`.
    pub(crate) fn tell(&self) {
        for (class, cases) in &self.open {
            let chains_broken = (*class == CaseClass::ChainBroken).then_some(*cases);
            tracing::warn!(run = %self.run.id, class = class.as_str(), cases, chains_broken, "reconciliation");
        }
    }

    /// Says that a stored record could not be read, and what of it was not compared. The rest goes on.
    pub(crate) fn unreadable(&mut self, of: &str, what: &str) {
        tracing::warn!(run = %self.run.id, of, what, "a stored record cannot be read");
        match self.result.skipped.len() {
            MAX_SKIPPED => self.result.skipped.push("more stored records cannot be read: see the log".to_owned()),
            n if n < MAX_SKIPPED => self.result.skipped.push(format!("{of}: a stored {what} cannot be read")),
            _ => {}
        }
    }

    /// Records several.
    pub(crate) async fn record_all(&mut self, findings: &[Finding]) -> Result<(), StoreError> {
        for finding in findings {
            self.record(finding).await?;
        }
        Ok(())
    }
}
