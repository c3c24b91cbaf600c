//! Who may do what: each function has a role of its own with named actions on named resources, nobody
//! may change a ledger entry, and secrets are references.
//!
//! A statement is found wherever it stands (inline, in a managed policy, behind an `!If`), so a new way
//! of writing one is not a way around the rules.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{Finding, Resource, listed, of_kind, resources, target};

/// The table whose items are never changed.
const LEDGER: &str = "LedgerTable";
/// What changes or removes an item, or is denied on the ledger altogether. A put is needed; that it may
/// overwrite is what `audit` is for.
const LEDGER_DENIED: [&str; 7] = [
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:PartiQLDelete",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLSelect",
    "dynamodb:PartiQLUpdate",
];
/// Whom the policies of the control API's callers are for; `callers` judges their patterns of methods and paths.
const INVOKE: [&str; 1] = ["execute-api:Invoke"];
/// AWS X-Ray has no resources to name for these, so their resource can only be `*`.
const WITHOUT_RESOURCES: [&str; 2] = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"];

/// A permission statement, with the resource that holds it.
pub(super) struct Statement<'a> {
    pub(super) holder: &'a str,
    pub(super) body: &'a Value,
}

/// Every statement of every identity policy; trust and resource policies are not among them.
pub(super) fn statements(template: &Value) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    for resource in resources(template) {
        if resource.kind.starts_with("AWS::IAM::") || resource.kind == "AWS::Serverless::Function" {
            collect(resource.id, &resource.whole["Properties"], &mut found);
        }
    }
    found
}

fn collect<'a>(holder: &'a str, value: &'a Value, found: &mut Vec<Statement<'a>>) {
    match value {
        Value::Object(map) if map.contains_key("Effect") => found.push(Statement { holder, body: value }),
        Value::Object(map) => {
            let inside = map.iter().filter(|(key, _)| *key != "AssumeRolePolicyDocument");
            inside.for_each(|(_, value)| collect(holder, value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(holder, item, found)),
        _ => {}
    }
}

pub(super) fn actions(statement: &Value) -> Vec<&str> {
    listed(&statement["Action"]).into_iter().filter_map(Value::as_str).collect()
}

/// Named actions on named resources only, and nothing that touches a ledger entry.
pub(super) fn check_permissions(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Statement { holder, body } in statements(template) {
        if body["Effect"] != "Allow" {
            continue;
        }
        let mut find = |rule, says: String| findings.push(Finding::new(rule, holder, says));
        let actions = actions(body);
        if actions.is_empty() || actions.iter().any(|action| action.contains('*')) {
            find("action-wildcard", format!("name each action: {}", body["Action"]));
        }
        let exempt = actions.iter().all(|action| WITHOUT_RESOURCES.contains(action)) || actions == INVOKE;
        let named = listed(&body["Resource"]);
        // A wildcard may hide inside a `Fn::Sub`, so the text of the whole value is searched.
        if named.is_empty() || named.iter().any(|one| one.to_string().contains('*') && !exempt) {
            find("resource-wildcard", format!("name each resource: {}", body["Resource"]));
        }
        if named.iter().any(|one| one.to_string().contains(LEDGER)) {
            for action in actions.iter().filter(|action| LEDGER_DENIED.contains(action)) {
                find("ledger-write", format!("{action} changes or removes entries"));
            }
        }
    }
    findings
}

/// Each function has one role, in this template and its own, without managed policies.
pub(super) fn check_roles(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut taken = BTreeSet::new();
    let roles = of_kind(template, "AWS::IAM::Role");
    for function in of_kind(template, "AWS::Serverless::Function") {
        let role = target(function.property("Role")).filter(|id| roles.iter().any(|role| role.id == *id));
        match role {
            None => findings.push(Finding::new("role-missing", function.id, "name a role of this template")),
            Some(id) if !taken.insert(id) => {
                findings.push(Finding::new("role-shared", function.id, format!("{id} is another's")));
            }
            Some(_) => {}
        }
    }
    for role in roles.iter().filter(|role| !role.property("ManagedPolicyArns").is_null()) {
        findings.push(Finding::new("role-managed", role.id, "write the statements out"));
    }
    findings
}

/// A function is told of exactly the tables that its role may touch and the queues that it may send to.
pub(super) fn check_environment_matches_roles(template: &Value) -> Vec<Finding> {
    let ids = |kind: &str| -> BTreeSet<&str> { of_kind(template, kind).iter().map(|one| one.id).collect() };
    let (tables, queues) = (ids("AWS::DynamoDB::Table"), ids("AWS::SQS::Queue"));
    let mut findings = Vec::new();
    for function in of_kind(template, "AWS::Serverless::Function") {
        let role = target(function.property("Role"));
        let mut allowed = BTreeSet::new();
        for statement in statements(template).iter().filter(|statement| Some(statement.holder) == role) {
            let sends = actions(statement.body).contains(&"sqs:SendMessage");
            let ids = listed(&statement.body["Resource"]).into_iter().filter_map(target);
            allowed.extend(ids.filter(|id| tables.contains(id) || (sends && queues.contains(id))));
        }
        let told: BTreeSet<&str> = variables(&function)
            .into_iter()
            .filter_map(|(_, value)| target(value))
            .filter(|id| tables.contains(id) || queues.contains(id))
            .collect();
        if allowed != told {
            let says = format!("environment names {told:?}, the role {allowed:?}");
            findings.push(Finding::new("environment-differs", function.id, says));
        }
    }
    findings
}

fn variables<'a>(function: &Resource<'a>) -> Vec<(&'a str, &'a Value)> {
    let map = function.property("Environment")["Variables"].as_object();
    map.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
}

/// The resource of the one secret that the receiver may read.
const SECRET_ARN_END: &str = ":secret:${ProviderSecret}-??????";

/// The outbound function resolves no references: its secrets are parameters that nobody is shown.
fn is_hidden(template: &Value, function: &Resource<'_>, value: &Value) -> bool {
    let parameter = value["Ref"].as_str().map(|name| &template["Parameters"][name]);
    function.id == "OutboundFunction" && parameter.is_some_and(|one| one["NoEcho"] == true && one["Default"] == "")
}

/// Secrets are references that the receiver resolves; none stands in the template, and nobody else may read them.
pub(super) fn check_secrets(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in of_kind(template, "AWS::Serverless::Function") {
        let secrets = variables(&function).into_iter().filter(|(name, _)| name.ends_with("_SECRET"));
        for (name, value) in secrets {
            let reference = value["Fn::Sub"] == format!("secretsmanager:${{ProviderSecret}}#{name}");
            if !reference && !is_hidden(template, &function, value) {
                let says = "use secretsmanager:${ProviderSecret}# with the member of that name";
                findings.push(Finding::new("secret", format!("{}.{name}", function.id), says));
            }
        }
    }
    for Statement { holder, body } in statements(template) {
        let reads = actions(body).iter().any(|action| action.starts_with("secretsmanager:"));
        let named = body["Resource"]["Fn::Sub"].as_str().is_some_and(|arn| arn.ends_with(SECRET_ARN_END));
        if reads && !(holder == "ReceiverRole" && actions(body) == ["secretsmanager:GetSecretValue"] && named) {
            findings.push(Finding::new("secret-reader", holder, "only the receiver gets the value of the one secret"));
        }
    }
    findings
}

/// The ledger's own policy denies every change to everyone, unconditionally.
pub(super) fn check_ledger_policy(template: &Value) -> Vec<Finding> {
    let ledger = of_kind(template, "AWS::DynamoDB::Table").into_iter().find(|table| table.id == LEDGER);
    let document = ledger.map_or(&Value::Null, |table| &table.property("ResourcePolicy")["PolicyDocument"]);
    let denied: BTreeSet<&str> = listed(&document["Statement"])
        .into_iter()
        .filter(|one| one["Effect"] == "Deny" && one["Principal"] == "*" && one["Resource"] == "*")
        .filter(|one| one["Condition"].is_null())
        .flat_map(actions)
        .collect();
    LEDGER_DENIED
        .iter()
        .filter(|action| !denied.contains(*action))
        .map(|action| Finding::new("ledger-policy", LEDGER, format!("deny {action} to everyone")))
        .collect()
}

/// Two routes: webhooks without an authorizer (the signature is the check), control with IAM.
pub(super) fn check_routes(template: &Value) -> Vec<Finding> {
    let wanted = [("ANY /control/{proxy+}", "AWS_IAM"), ("POST /webhooks/{provider}", "NONE")];
    let routes = of_kind(template, "AWS::ApiGatewayV2::Route");
    let mut findings = Vec::new();
    for route in &routes {
        let (key, auth) = (route.property("RouteKey"), route.property("AuthorizationType"));
        if !wanted.iter().any(|(wanted_key, wanted_auth)| key == wanted_key && auth == wanted_auth) {
            findings.push(Finding::new("route", route.id, format!("not expected: {key} with {auth}")));
        }
    }
    if routes.len() != wanted.len() {
        findings.push(Finding::new("route-count", "Api", format!("{} routes, 2 expected", routes.len())));
    }
    for api in of_kind(template, "AWS::Serverless::HttpApi") {
        findings.push(Finding::new("route-form", api.id, "emulators deploy it without routes: write them out"));
    }
    findings
}
