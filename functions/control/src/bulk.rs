//! One decision for many reviews: a filter, a bound, a dry run, and a report per review.

use domain::limits::REVIEWS_PER_PAGE;
use domain::review::{Action, Alternative};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::resolve::{Request, decide};
use crate::reviews::{Filter, page};
use crate::{body, id};

/// Reviews decided by one request, unless it asks for fewer: each is a handful of calls, one after the other.
const DECIDED: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    filter: Filter,
    action: Action,
    alternative: Option<Alternative>,
    reason: String,
    #[serde(default)]
    release: bool,
    reference: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// `POST /control/reviews`: decides on each review that the filter takes, one after the other, and reports
/// each. What one review refuses stops no other.
pub(crate) async fn resolve(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let asked: Body = body(event)?;
    let limit = asked.limit.unwrap_or(DECIDED);
    if !(1..=REVIEWS_PER_PAGE.min(DECIDED)).contains(&limit) {
        return Err(Problem::invalid(format!("limit: give 1 to {DECIDED}")));
    }
    let reference = asked.reference.as_deref().map(id).transpose()?;
    let Body { action, alternative, reason, release, dry_run, .. } = asked;
    let request = Request { action, alternative, release, reason, reference, actor: event.actor() }.check()?;
    let filter = asked.filter.check(app.clock.now_ms())?;
    let found = page(app, &filter, asked.after.as_deref(), limit).await?;
    let (mut results, mut decided, mut refused) = (Vec::<Value>::new(), 0, 0);
    for review in &found.reviews {
        let Some(id) = &review.id else {
            refused += 1;
            results.push(json!({ "id": null, "result": "refused", "detail": "this kind of review is not known here" }));
            continue;
        };
        match decide(app, id, &request, dry_run).await {
            Ok(done) => {
                decided += 1;
                let result = if dry_run { "would-decide" } else { "decided" };
                results.push(json!({
                    "id": id.to_string(), "result": result, "waived": done.decision.waived,
                    "released": done.decision.released,
                }));
            }
            Err(problem) if problem.status == 503 => return Err(problem), // asking again goes on where it stopped
            Err(problem) => {
                refused += 1;
                results.push(json!({
                    "id": id.to_string(), "result": "refused", "code": problem.code, "detail": problem.detail,
                }));
            }
        }
    }
    let body = json!({
        "dry_run": dry_run, "decided": decided, "refused": refused, "results": results, "next": found.next,
    });
    Ok(GatewayResponse::json(200, &body))
}
