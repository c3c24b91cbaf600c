//! The template keeps the rules of `access`, and each planted mistake against one is found.

use serde_json::{Value, json};

use super::{access, document, named, template, with};

#[test]
fn roles_name_their_actions_and_resources() {
    let template = template();
    assert_eq!(document::of_kind(&template, "AWS::Serverless::Function").len(), 8);
    assert_eq!(access::check_permissions(&template), []);
    assert_eq!(access::check_roles(&template), []);
    assert_eq!(access::check_environment_matches_roles(&template), []);
}

#[test]
fn a_role_that_is_too_wide_is_found() {
    let statement = "/Resources/JobRole/Properties/Policies/0/PolicyDocument/Statement/0";
    for action in [json!("dynamodb:*"), json!(["dynamodb:Query", "dynamodb:*Item"]), Value::Null] {
        let findings = access::check_permissions(&with(statement, "Action", action));
        assert_eq!(named(&findings), [("action-wildcard", "JobRole")]);
    }
    let any_index = json!([{"Fn::Sub": "${EventsTable.Arn}/index/*"}]);
    for resource in [json!("*"), any_index, Value::Null] {
        let findings = access::check_permissions(&with(statement, "Resource", resource));
        assert_eq!(named(&findings), [("resource-wildcard", "JobRole")]);
    }
    // Tracing's "*" is for its two actions only.
    let tracing = "/Resources/TracingPolicy/Properties/PolicyDocument/Statement/0";
    let more = json!(["xray:PutTraceSegments", "sqs:PurgeQueue"]);
    let findings = access::check_permissions(&with(tracing, "Action", more));
    assert_eq!(named(&findings), [("resource-wildcard", "TracingPolicy")]);
    // A policy that SAM would attach, and one behind a condition, are read too.
    let wide = json!({"Fn::If": ["Some", {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}, null]});
    let findings = access::check_permissions(&with("/Resources/JobFunction/Properties", "Policies", wide));
    assert_eq!(named(&findings), [("action-wildcard", "JobFunction"), ("resource-wildcard", "JobFunction")]);
}

#[test]
fn a_role_that_is_missing_shared_or_managed_is_found() {
    let job = "/Resources/JobFunction/Properties";
    let missing = access::check_roles(&with(job, "Role", Value::Null));
    assert_eq!(named(&missing), [("role-missing", "JobFunction")]);
    let shared = access::check_roles(&with(job, "Role", json!({"Fn::GetAtt": "BillingRole.Arn"})));
    assert_eq!(named(&shared), [("role-shared", "JobFunction")]);
    let arns = json!(["arn:aws:iam::aws:policy/AdministratorAccess"]);
    let managed = access::check_roles(&with("/Resources/JobRole/Properties", "ManagedPolicyArns", arns));
    assert_eq!(named(&managed), [("role-managed", "JobRole")]);
}

#[test]
fn a_table_that_the_function_is_not_told_of_is_found() {
    let statement = "/Resources/JobRole/Properties/Policies/0/PolicyDocument/Statement/0";
    let balances = json!([{"Fn::GetAtt": "EventsTable.Arn"}, {"Fn::GetAtt": "BalancesTable.Arn"}]);
    let wider = access::check_environment_matches_roles(&with(statement, "Resource", balances));
    assert_eq!(named(&wider), [("environment-differs", "JobFunction")]);
    let told = "/Resources/JobFunction/Properties/Environment/Variables";
    let told = with(told, "HOOKLEDGER_LEDGER_TABLE", json!({"Ref": "LedgerTable"}));
    assert_eq!(named(&access::check_environment_matches_roles(&told)), [("environment-differs", "JobFunction")]);
}

#[test]
fn a_queue_that_the_function_may_send_to_and_is_not_told_of_is_found() {
    let told = "/Resources/OutboundFunction/Properties/Environment/Variables";
    let none = with(told, "HOOKLEDGER_OUTBOUND_QUEUE_URL", json!(""));
    assert_eq!(named(&access::check_environment_matches_roles(&none)), [("environment-differs", "OutboundFunction")]);
    let told = "/Resources/DeadletterFunction/Properties/Environment/Variables";
    let more = with(told, "HOOKLEDGER_OUTBOUND_QUEUE_URL", json!({"Ref": "OutboundQueue"}));
    assert_eq!(named(&access::check_environment_matches_roles(&more)), [("environment-differs", "DeadletterFunction")]);
}

#[test]
fn nobody_may_change_a_ledger_entry() {
    let template = template();
    assert_eq!(access::check_ledger_policy(&template), []);
    // Who may write the ledger at all is part of `roles_name_their_actions_and_resources`; here, that
    // each way of changing an entry is found in a role.
    let statement = "/Resources/BillingRole/Properties/Policies/0/PolicyDocument/Statement/2";
    for action in ["UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate"] {
        let allowed = json!(["dynamodb:PutItem", format!("dynamodb:{action}")]);
        let findings = access::check_permissions(&with(statement, "Action", allowed));
        assert_eq!(named(&findings), [("ledger-write", "BillingRole")], "{action}");
    }
}

#[test]
fn a_ledger_policy_with_a_gap_is_found() {
    let statement = "/Resources/LedgerTable/Properties/ResourcePolicy/PolicyDocument/Statement/0";
    let some = json!([
        "dynamodb:UpdateItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:PartiQLDelete",
        "dynamodb:PartiQLInsert",
        "dynamodb:PartiQLSelect",
        "dynamodb:PartiQLUpdate"
    ]);
    let without_delete = access::check_ledger_policy(&with(statement, "Action", some));
    assert_eq!(named(&without_delete), [("ledger-policy", "LedgerTable")]);
    assert!(without_delete[0].says.contains("dynamodb:DeleteItem"));

    let one_principal = json!({"AWS": "arn:aws:iam::123456789012:role/one"});
    let condition = json!({"Bool": {"aws:SecureTransport": "false"}});
    let planted = [("Effect", json!("Allow")), ("Principal", one_principal), ("Condition", condition)];
    for (name, value) in planted {
        let findings = access::check_ledger_policy(&with(statement, name, value));
        assert_eq!(findings.len(), 7, "{name}: all seven actions are open");
    }
}

#[test]
fn routes_are_the_two_of_the_design() {
    assert_eq!(access::check_routes(&template()), []);
    let open = with("/Resources/ControlRoute/Properties", "AuthorizationType", json!("NONE"));
    assert_eq!(named(&access::check_routes(&open)), [("route", "ControlRoute")]);
    let implicit = with("/Resources", "Http", json!({"Type": "AWS::Serverless::HttpApi"}));
    assert_eq!(named(&access::check_routes(&implicit)), [("route-form", "Http")]);
}

#[test]
fn secrets_are_references() {
    assert_eq!(access::check_secrets(&template()), []);
    let variables = "/Resources/ReceiverFunction/Properties/Environment/Variables";
    let swapped = json!({"Fn::Sub": "secretsmanager:${ProviderSecret}#STRIPE_WEBHOOK_SECRET"});
    for value in [json!("plain"), json!({"Ref": "LogLevel"}), swapped] {
        let findings = access::check_secrets(&with(variables, "ACME_WEBHOOK_SECRET", value));
        assert_eq!(named(&findings), [("secret", "ReceiverFunction.ACME_WEBHOOK_SECRET")]);
    }
    let variables = "/Resources/OutboundFunction/Properties/Environment/Variables";
    for value in [json!("plain"), json!({"Ref": "AppUrl"})] {
        let findings = access::check_secrets(&with(variables, "APP_WEBHOOK_SECRET", value));
        assert_eq!(named(&findings), [("secret", "OutboundFunction.APP_WEBHOOK_SECRET")]);
    }
    let shown = access::check_secrets(&with("/Parameters/AppWebhookSecret", "NoEcho", json!(false)));
    assert_eq!(named(&shown), [("secret", "OutboundFunction.APP_WEBHOOK_SECRET")]);
    let statement = |resource: Value| {
        let read = json!({"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": resource});
        with("/Resources/JobRole/Properties", "Policies", json!([{"PolicyDocument": {"Statement": [read]}}]))
    };
    let same = json!({"Fn::Sub": "arn:x:secret:${ProviderSecret}-??????"});
    assert_eq!(named(&access::check_secrets(&statement(same))), [("secret-reader", "JobRole")]);
}
