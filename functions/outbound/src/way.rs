//! How an intent leaves: a queue, a bus, or HTTP. Each turns what its client says into an [`Answer`], and decides nothing.

use std::time::Duration;

use domain::decide::NoEffect;
use domain::intent::Intent;
use domain::operation::Class;
use domain::outcome::{Answer, LookUp, Rules, Seen, look};
use domain::profile::Destination;
use queue::QueueError;
use runtime::App;
use runtime::gate::Admission;

use crate::http::Http;

/// A destination with everything that it takes to send there.
pub(crate) enum Way<'a> {
    /// A queue, by its URL.
    Sqs(&'a str),
    /// A bus, by its name or ARN.
    Bus(&'a str),
    /// HTTP.
    Http(Box<Http<'a>>),
}

impl<'a> Way<'a> {
    /// The way of an intent; else what is to be repaired first.
    pub(crate) fn of(app: &'a App, intent: &Intent) -> Result<Self, NoEffect> {
        let Ok(to) = intent.to.parse::<Destination>() else {
            let note = "a stored intent names a destination that this version does not know".to_owned();
            return Err(NoEffect::Review(Class::Unreadable, note));
        };
        let address = |variable: &str| {
            let note =
                format!("set the environment variable {variable} of the outbound function, and name it in a profile");
            app.destinations.value(variable).ok_or(NoEffect::Wait(Class::Refused, note))
        };
        match &to {
            Destination::Sqs(variable) => Ok(Self::Sqs(address(variable)?)),
            Destination::EventBridge(variable) => Ok(Self::Bus(address(variable)?)),
            Destination::Http(name) => {
                let table = app.profiles.destination(name).ok_or_else(|| no_table(name))?;
                let http = Http::open(app, table).map_err(|note| NoEffect::Wait(Class::Refused, note))?;
                Ok(Self::Http(Box::new(http)))
            }
        }
    }

    /// What its answers to an intent mean.
    pub(crate) fn rules(&self, intent: &Intent) -> Rules {
        match (self, &intent.call) {
            (Self::Sqs(_) | Self::Bus(_), _) => Rules::of_queue(),
            (Self::Http(http), Some(call)) if call.updates => http.table.rules.for_update(&call.method),
            (Self::Http(http), _) => http.table.rules.clone(),
        }
    }

    /// Waits for a turn, or says until when there is none.
    pub(crate) async fn admit(&self, app: &App) -> Option<NoEffect> {
        let Self::Http(http) = self else { return None };
        admit(app, http).await
    }

    /// Sends the stored bytes.
    pub(crate) async fn send(&self, app: &App, intent: &Intent) -> Answer {
        match self {
            Self::Sqs(url) => taken(app.queues.forward(url, intent).await),
            Self::Bus(bus) => taken(app.queues.put_event(bus, intent).await),
            Self::Http(http) => http.send(app, intent).await,
        }
    }

    /// Asks whether the effect exists.
    pub(crate) async fn look_up(&self, app: &App, lookup: &LookUp, intent: &Intent) -> Seen {
        match self {
            Self::Sqs(_) | Self::Bus(_) => Seen::Unclear("a queue cannot be asked".to_owned()),
            Self::Http(http) => look(lookup, &intent.deduplication_id(), &http.look_up(app, intent).await),
        }
    }
}

/// Waits for a turn at an HTTP destination, or says until when there is none.
pub(crate) async fn admit(app: &App, http: &Http<'_>) -> Option<NoEffect> {
    let name = &http.table.name;
    match app.destinations.gates.admit(http.table, app.clock.now_ms()) {
        Admission::Go(0) => None,
        Admission::Go(pause_ms) => {
            tokio::time::sleep(Duration::from_millis(u64::try_from(pause_ms).unwrap_or(0))).await;
            None
        }
        Admission::Busy(due_ms) => Some(NoEffect::Until(
            Class::Transient,
            format!("http:{name} has its rate of requests, or asked to be left alone"),
            due_ms,
        )),
        Admission::Down(due_ms) => {
            let note = format!("http:{name} did not answer several times in a row and is left alone");
            Some(NoEffect::Until(Class::Transient, note, due_ms))
        }
    }
}

/// The file has no such table any more, or not yet.
pub(crate) fn no_table(name: &str) -> NoEffect {
    NoEffect::Wait(Class::Refused, format!("providers.toml has no table [destinations.{name}]: add it and deploy"))
}

fn taken(sent: Result<(), QueueError>) -> Answer {
    match sent {
        Ok(()) => Answer::Taken,
        Err(error) if error.refused => Answer::Refused(error.to_string()),
        Err(error) => Answer::Lost(error.to_string()),
    }
}
