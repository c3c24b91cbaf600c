//! `providers.toml` as data: every field, what it may hold, and what it says. The loader's structs have the same fields.

use super::charges::CHARGES;
use super::destination_shape::DESTINATION_TABLE;
use super::fetch::FETCH;
use super::secret::{SecretPlace, remedy};
use super::{Destination, Source};
use crate::config::shape::{Field, Form, Kind, TIME_TEXT};
use crate::json::Pointer;
use crate::money::Micros;
use crate::operation::OperationName;
use crate::own::OwnType;

/// Longest wait of any kind that a profile may state: ten years.
const MAX_HOURS: i64 = 87_600;

/// The whole file.
pub static SHAPE: Kind = Kind::Table(&[
    Field::may("providers", Kind::Names(&PROVIDER), "one table per endpoint"),
    Field::may("subscriptions", Kind::Names(&SUBSCRIPTION), "who is told of what happened here, one table each"),
    Field::may("destinations", Kind::Names(&DESTINATION_TABLE), "one table per HTTP destination"),
    Field::may("charges", Kind::Names(&CHARGES), "where postpaid wallets are charged, one table per payment provider"),
]);

pub(super) static SUBSCRIPTION: Kind = Kind::Table(&[
    Field::must("to", Kind::Form(&DESTINATION), "where to, as `forward` has it"),
    Field::must("types", Kind::List(&OWN_TYPE, 1), "what it wants: `[\"job.settled\"]`"),
    Field::must("tenants", Kind::List(&Kind::Text, 1), "whose; `[\"*\"]` is every tenant"),
    Field::may("ordered", Kind::Boolean, "true where the order of each job and wallet is kept"),
    Field::may("low_balance", Kind::Names(&Kind::Form(&AMOUNT)), "below which balance it is told, by currency"),
]);

static OWN_TYPE: Kind = Kind::Choice(|| OwnType::ALL.iter().map(|one| one.as_str()).collect());
static AMOUNT: Form = Form {
    is: "an amount in major units",
    pattern: r"^\d+(\.\d{1,6})?$",
    check: |text| {
        let told = |e: crate::money::MoneyError| (e.to_string(), "write an amount such as \"10.00\"".to_owned());
        Micros::parse(text).and_then(Micros::non_negative).map(|_| ()).map_err(told)
    },
};

pub(super) static PROVIDER: Kind = Kind::Table(&[
    Field::must("owner", Kind::Text, "who answers for this endpoint"),
    Field::must("signature", SIGNATURE, "`{ scheme = \"NAME\" }`, or a recipe with `scheme = \"hmac\"`"),
    Field::must("secrets", Kind::List(&SECRET, 1), "where its live secrets are: `[\"ACME_WEBHOOK_SECRET\"]`"),
    Field::must("retry_window_hours", Kind::Integer(0, MAX_HOURS), "how long the provider tries again, in hours"),
    Field::may("run_limit_hours", Kind::Integer(0, MAX_HOURS), "how long a run may take, in hours; 48 without it"),
    Field::may("retention_days", Kind::Integer(0, 0), "days for which bodies are kept; 0: not at all"),
    Field::may("notes", Kind::List(&Kind::Text, 0), "what an operator should know"),
    Field::must("tenants", Kind::List(&Kind::Text, 1), "whom it may speak for; `[\"*\"]` is every tenant"),
    Field::may("body", Kind::Choice(|| vec!["json", "form"]), "how bodies are written; json without it"),
    Field::must("event_id", EVENT_ID, "\"signed-id\", \"header:NAME\", \"body:/pointer\", or a list of body fields"),
    Field::may("id_signed", Kind::Boolean, "false where no signature covers the event id"),
    Field::may("number_ids_as_text", Kind::Boolean, "true where 5 and \"5\" are one id"),
    Field::may("items", Kind::Form(&POINTER), "where a delivery's list of items stands; \"\" is the body itself"),
    Field::may("item_id", Kind::Form(&SOURCE), "an item's id, as \"item:/id\"; without it its place in the list"),
    Field::must("event_type", Kind::Form(&SOURCE), "where the event type stands, as \"body:/type\""),
    Field::may("first_sent", Kind::Table(TIME), "when the provider first sent it"),
    Field::may("attempt", Kind::Form(&SOURCE), "where the attempt number stands"),
    Field::may("hash_ignore", Kind::List(&Kind::Form(&POINTER), 0), "members that change between deliveries"),
    Field::may("expire_after_hours", Kind::Integer(0, MAX_HOURS), "older events are a person's; 24 without it"),
    Field::may("hold_hours", Kind::Integer(1, MAX_HOURS), "how long a hold lives; without it retry window + run limit"),
    Field::may("accept_status", STATUS_TAKEN, "the status of an event that is taken: 202 without it, or 200"),
    Field::may("quarantine_status", STATUS_REFUSED, "for what cannot be processed: 200 without it, 400, 409 or 422"),
    Field::may("fields", Kind::Table(FIELDS), "where the business fields stand"),
    Field::may("only_if", Kind::List(&Kind::Table(ONLY_IF), 0), "what an event must carry to be this endpoint's"),
    Field::may("data", Kind::Names(&Kind::Form(&SOURCE)), "further values that a forward carries, by name"),
    Field::may("forward", Kind::Table(FORWARD), "where its events are forwarded to"),
    Field::may("minor_digits", Kind::Names(&Kind::Integer(0, 6)), "decimals of minor units that differ from ISO 4217"),
    Field::may("policies", Kind::Table(POLICIES), "pinned in each job at submission"),
    Field::may("models", Kind::Names(&Kind::Table(POLICIES)), "in place of `policies` for one model"),
    Field::may("events", Kind::Names(&EVENT), "by event type"),
    Field::may("list", Kind::Table(LIST), "where the provider lists its own jobs, for the reconciler"),
]);

pub(super) static EVENT: Kind = Kind::Table(&[
    Field::may("outcome", Kind::Choice(|| vec!["success", "failure", "canceled"]), "how the run ended"),
    Field::must("operations", Kind::List(&OPERATION, 0), "what the event leads to"),
    Field::may("unbilled", Kind::Text, "why a completion of this type is not settled"),
    Field::may("fields", Kind::Table(FIELDS), "where this type's fields stand, before the profile's"),
    Field::may("only_if", Kind::List(&Kind::Table(ONLY_IF), 0), "what an event of this type must carry"),
    Field::may("data", Kind::Names(&Kind::Form(&SOURCE)), "further values, beside the profile's"),
    Field::may("forward", Kind::Table(FORWARD), "where this type is forwarded to"),
    Field::may("board", Kind::Table(BOARD), "with create-job: the job board on which a booking's job is made"),
    Field::may("fetch", Kind::Table(FETCH), "where its provider is asked for what the event lacks"),
]);

pub(super) static BOARD: &[Field] = &[
    Field::must("to", Kind::Form(&DESTINATION), "\"http:NAME\" of a table [destinations.NAME] with an `id`"),
    Field::must(
        "body",
        Kind::Names(&Kind::Form(&SOURCE)),
        "members of the body by their pointer, each with its source",
    ),
    Field::must("update", Kind::Table(BOARD_UPDATE), "how a later version changes the job that the first one made"),
    Field::may("attach_ref", Kind::Boolean, "true where the board's id becomes our job's provider_job_ref"),
];

pub(super) static BOARD_UPDATE: &[Field] = &[
    Field::may("method", Kind::Choice(|| vec!["PUT", "PATCH", "POST"]), "PUT without it"),
    Field::must("path", Kind::Form(&UPDATE_PATH), "behind the base address; {id} is the board's id of the job"),
];

pub(super) static LIST: &[Field] = &[
    Field::must("url", Kind::Form(&LIST_URL), "\"https://...\", or \"env:NAME\" of the variable that holds it"),
    Field::may("header", Kind::Table(LIST_HEADER), "the header that authorises, where one is needed"),
    Field::may("page", Kind::Table(LIST_PAGE), "how the next page is asked for"),
    Field::must("items", Kind::Form(&POINTER), "where the list stands in the answer"),
    Field::must("ref", Kind::Form(&POINTER), "in an entry: the provider's name for the job"),
    Field::must("status", Kind::Form(&POINTER), "in an entry: its status"),
    Field::must("statuses", Kind::Names(&LIST_STATUS), "what each status means"),
    Field::may("usage", Kind::Form(&POINTER), "in an entry: its usage"),
    Field::may("updated", Kind::Table(LIST_UPDATED), "in an entry: when it last changed"),
    Field::may("max_pages", Kind::Integer(1, 1_000), "pages read at most; 100 without it"),
];

pub(super) static LIST_HEADER: &[Field] = &[
    Field::must("name", Kind::Text, "its name"),
    Field::must("secret", Kind::Text, "the environment variable with its value"),
    Field::may("prefix", Kind::Text, "what precedes the value, as \"Bearer \""),
];

pub(super) static LIST_PAGE: &[Field] = &[
    Field::must("param", Kind::Text, "the query parameter that takes the cursor"),
    Field::must("next", Kind::Form(&POINTER), "where the next page's cursor stands in the answer"),
];

pub(super) static LIST_UPDATED: &[Field] = &[
    Field::must("at", Kind::Form(&POINTER), "where it stands"),
    Field::must("unit", Kind::Choice(|| vec!["rfc3339", "seconds", "milliseconds"]), "how it is written"),
];

static LIST_STATUS: Kind = Kind::Choice(|| vec!["running", "success", "failure", "canceled"]);

pub(super) static FORWARD: &[Field] = &[
    Field::must("to", Kind::Form(&DESTINATION), "the environment variable with the address"),
    Field::may(
        "action_key",
        Kind::List(&Kind::Form(&SOURCE), 0),
        "what makes two events one action, beside their type",
    ),
];

pub(super) static FIELDS: &[Field] = &[
    Field::may("tenant", Kind::Form(&SOURCE), "whose job"),
    Field::may("job", Kind::Form(&SOURCE), "our job id"),
    Field::may("ref", Kind::Form(&SOURCE), "the provider's name for the job"),
    Field::may("model", Kind::Form(&SOURCE), "the model that ran"),
    Field::may("wallet", Kind::Form(&SOURCE), "who pays"),
    Field::may("currency", Kind::Form(&SOURCE), "the currency"),
    Field::may("sequence", Kind::Form(&SOURCE), "the order signal"),
    Field::may("reference", Kind::Form(&SOURCE), "the key of a correction, payment or refund"),
    Field::may("usage", Kind::Form(&SOURCE), "the usage object of the body"),
    Field::may("amount", Kind::Form(&SOURCE), "an amount as a decimal in major units"),
    Field::may("minor_amount", Kind::Form(&SOURCE), "an amount as a whole number of the minor unit"),
    Field::may("minor_authorised", Kind::Form(&SOURCE), "of a refund: what was authorised, in the minor unit"),
    Field::may("minor_captured", Kind::Form(&SOURCE), "of a refund: what of it was captured; the rest is taken off"),
    Field::may("booking", Kind::Form(&SOURCE), "the booking that a job is made from"),
    Field::may("version", Kind::Form(&SOURCE), "the booking's version, a whole number"),
];

pub(super) static POLICIES: &[Field] = &[
    Field::may("overage", Kind::Choice(|| vec!["review", "cap", "available"]), "a charge above the hold"),
    Field::may("bill_partial", Kind::Boolean, "usage of a failed run is charged"),
    Field::may("provisional_failure", Kind::Boolean, "a success may follow a failure"),
    Field::may("extendable", Kind::Boolean, "the hold may be extended"),
];

pub(super) static TIME: &[Field] = &[
    Field::must("at", Kind::Form(&SOURCE), "where it stands"),
    Field::must("unit", Kind::Choice(|| vec!["rfc3339", "seconds", "milliseconds"]), "how it is written"),
];

pub(super) static ONLY_IF: &[Field] = &[
    Field::must("at", Kind::Form(&SOURCE), "where it stands"),
    Field::must("is", Kind::Text, "the value's text; `true` and `false` for booleans"),
];

const STATUS_TAKEN: Kind = Kind::Number(&[200, 202]);
const STATUS_REFUSED: Kind = Kind::Number(&[200, 400, 409, 422]);

static OPERATION: Kind = Kind::Choice(|| {
    // `fetch` is planned by the table of that name.
    let named = OperationName::ALL.iter().filter(|name| **name != OperationName::Fetch);
    named.map(|name| name.as_str()).collect()
});

static SECRET: Kind = Kind::OneOf(&[Kind::Form(&PLACE), Kind::Table(SECRET_TABLE)]);

pub(super) static SECRET_TABLE: &[Field] = &[
    Field::must("at", Kind::Form(&PLACE), "where it is"),
    Field::may("id", Kind::Text, "its public name, logged when it matches; without it the place"),
    Field::may("not_after", Kind::Form(&TIME_TEXT), "the last moment in which it is tried"),
    Field::may("public_key", Kind::Text, "the public key that names it in the request (Braintree)"),
];

const EVENT_ID: Kind = Kind::OneOf(&[Kind::Form(&ID_SOURCE), Kind::List(&Kind::Form(&SOURCE), 1)]);

const SIGNATURE: Kind = Kind::Table(RECIPE);

pub(super) static RECIPE: &[Field] = &[
    Field::must("scheme", Kind::Choice(schemes), "a scheme by name, or hmac or public-key with their fields"),
    Field::may("tolerance_s", Kind::Integer(0, 86_400), "the accepted age of a signed timestamp, both ways"),
    Field::may("signature_header", NAMES, "the header with the signature, or aliases"),
    Field::may("id_header", NAMES, "the header with an id that `signed` contains"),
    Field::may("delivery_header", NAMES, "the header with an id that is not signed"),
    Field::may("timestamp_header", NAMES, "the header with the timestamp"),
    Field::may("timestamp_prefix", Kind::Text, "what precedes the timestamp inside the signature header"),
    Field::may("timestamp_body", Kind::Text, "the body's member with the timestamp"),
    Field::may("timestamp_unit", Kind::Choice(|| vec!["s", "ms", "auto"]), "seconds, milliseconds, or told by length"),
    Field::may(
        "signed",
        Kind::Text,
        "the signed text: {id}, {timestamp}, {body}, {body_sha256}, {url}, {method}, {header:NAME}",
    ),
    Field::may("digest", Kind::Choice(|| vec!["sha256", "sha1"]), "the hash inside the HMAC"),
    Field::may("encoding", Kind::Choice(|| vec!["hex", "base64", "base64url"]), "how the signature is written"),
    Field::may("key", Kind::Choice(key_forms), "how the secret becomes a key"),
    Field::may("separator", Kind::Form(&CHARACTER), "between several signatures"),
    Field::may("prefix", Kind::Form(&ANY), "before each signature"),
];

const NAMES: Kind = Kind::OneOf(&[Kind::Text, Kind::List(&Kind::Text, 1)]);

fn schemes() -> Vec<&'static str> {
    signature::Recipe::names().chain(["hmac", "public-key"]).collect()
}

fn key_forms() -> Vec<&'static str> {
    vec!["utf8", "base64", "hex", "whsec", "sha1", "ed25519-hex", "ed25519-jwks", "p256-spki"]
}

const SOURCE_REMEDY: &str =
    "write \"header:NAME\", \"body:/json/pointer\", or \"item:/json/pointer\" where there are items";

static SOURCE: Form = Form {
    is: "a source",
    pattern: r"^(header:.+|(body|item):(/([^~]|~[01])*)?)$",
    check: |text| text.parse::<Source>().map(|_| ()).map_err(|cause| (cause, SOURCE_REMEDY.to_owned())),
};
static ID_SOURCE: Form = Form {
    is: "signed-id or a source",
    pattern: r"^(signed-id|header:.+|body:(/([^~]|~[01])*)?)$",
    check: |text| if text == "signed-id" { Ok(()) } else { (SOURCE.check)(text) },
};
static UPDATE_PATH: Form = Form {
    is: "a path with {id}",
    pattern: r"^/([!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]|\{key\}|\{id\})*$",
    check: |text| super::board::update_path(text).map_err(|cause| (cause, "write \"/v1/jobs/{id}\"".to_owned())),
};
static LIST_URL: Form = Form {
    is: "an address",
    pattern: r"^(https://.+|env:.+)$",
    check: |text| match text.starts_with("https://") || text.strip_prefix("env:").is_some_and(|name| !name.is_empty()) {
        true => Ok(()),
        false => Err(("this is no address".to_owned(), "write \"https://...\" or \"env:NAME\"".to_owned())),
    },
};
pub(super) static DESTINATION: Form = Form {
    is: "a destination",
    pattern: r"^((sqs|eventbridge):[A-Z0-9_]+|http:[a-z0-9_-]{1,64})$",
    check: |text| {
        let remedy = "write \"sqs:VARIABLE\" or \"eventbridge:VARIABLE\", the environment variable with its address, or \
                      \"http:NAME\" of a table [destinations.NAME]";
        text.parse::<Destination>().map(|_| ()).map_err(|_| ("this is no destination".to_owned(), remedy.to_owned()))
    },
};
pub(super) static POINTER: Form = Form {
    is: "a JSON pointer",
    pattern: r"^(/([^~]|~[01])*)?$",
    check: |text| {
        let told = |e: crate::json::PointerError| (e.to_string(), "write a pointer such as \"/data/id\"".to_owned());
        text.parse::<Pointer>().map(|_| ()).map_err(told)
    },
};
static PLACE: Form = Form {
    is: "the name of a secret",
    pattern: r"^([A-Z_][A-Z0-9_]*|secretsmanager:[A-Za-z0-9/_+=.@:-]+(#.+)?|jwks:https://\S+)$",
    check: |text| text.parse::<SecretPlace>().map(|_| ()).map_err(|cause| (cause.to_owned(), remedy())),
};
static CHARACTER: Form = Form {
    is: "one character",
    pattern: "^.$",
    check: |text| match text.chars().count() {
        1 => Ok(()),
        _ => Err(("this is not one character".to_owned(), "write one, such as \",\"".to_owned())),
    },
};
static ANY: Form = Form { is: "a text, perhaps empty", pattern: "", check: |_| Ok(()) };
