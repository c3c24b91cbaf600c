//! How a deployment is rolled out, named, encrypted and configured: versions behind an alias with a canary, one KMS key
//! for everything, and the settings of `samconfig.toml` for two environments.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document::{self, Finding, of_kind, target};
use super::{named, template, with};

const SAMCONFIG: &str = include_str!("../../../samconfig.toml");
const COMPOSE: &str = include_str!("../../../infra/compose.yaml");

/// Every deployment is a new version behind the alias `live`, shifted and rolled back by alarms, and everything that
/// calls a function calls the alias: what called the function itself would skip the canary.
fn check_rollout(template: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let shared = &template["Globals"]["Function"];
    let preference = &shared["DeploymentPreference"];
    let alarms = json!([{"Ref": "FunctionErrorsAlarm"}, {"Ref": "ServerErrorsAlarm"}]);
    if shared["AutoPublishAlias"] != "live" {
        findings.push(Finding::new("alias", "Globals", "AutoPublishAlias must be live"));
    }
    if preference["Type"] != json!({"Ref": "DeploymentType"}) || preference["Alarms"] != alarms {
        findings.push(Finding::new("canary", "Globals", "shift as DeploymentType says, and roll back on both alarms"));
    }
    for function in of_kind(template, "AWS::Serverless::Function") {
        if function.property("AutoPublishAliasAllProperties") != &Value::Bool(true) {
            findings.push(Finding::new("alias-settings", function.id, "a changed setting must be a new version too"));
        }
    }
    let callers = [("AWS::ApiGatewayV2::Integration", "IntegrationUri"), ("AWS::Lambda::Permission", "FunctionName")];
    for (kind, property) in callers {
        for one in of_kind(template, kind) {
            if !one.property(property)["Ref"].as_str().is_some_and(|name| name.ends_with("Function.Alias")) {
                findings.push(Finding::new("alias-call", one.id, format!("{property} must be a function's alias")));
            }
        }
    }
    findings
}

/// Each log group is kept as long as the parameter says, and encrypted by the key where there is one.
fn check_logs(template: &Value) -> Vec<Finding> {
    let key = json!({"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]});
    let wanted = [("RetentionInDays", json!({"Ref": "LogRetentionDays"})), ("KmsKeyId", key)];
    let mut findings = Vec::new();
    let groups = of_kind(template, "AWS::Logs::LogGroup");
    for group in &groups {
        for (name, value) in &wanted {
            if group.property(name) != value {
                findings.push(Finding::new("log-group", group.id, format!("{name} must be {value}")));
            }
        }
    }
    for function in of_kind(template, "AWS::Serverless::Function") {
        let own = target(&function.property("LoggingConfig")["LogGroup"]);
        if !groups.iter().any(|group| Some(group.id) == own) {
            findings.push(Finding::new("log-group", function.id, "logs into no group of this template"));
        }
    }
    findings
}

/// Every role may use the key, where there is one.
fn check_key_policy(template: &Value) -> Vec<Finding> {
    let policy = of_kind(template, "AWS::IAM::ManagedPolicy").into_iter().find(|one| one.id == "KeyPolicy");
    let roles = policy.map(|policy| document::listed(policy.property("Roles")));
    let holders: BTreeSet<&str> = roles.into_iter().flatten().filter_map(target).collect();
    of_kind(template, "AWS::IAM::Role")
        .into_iter()
        .filter(|role| !holders.contains(role.id))
        .map(|role| Finding::new("key-policy", role.id, "may not use the key"))
        .collect()
}

#[test]
fn a_deployment_is_shifted_to_a_new_version_and_rolled_back_by_alarms() {
    assert_eq!(check_rollout(&template()), []);
    let globals = "/Globals/Function";
    assert_eq!(named(&check_rollout(&with(globals, "AutoPublishAlias", Value::Null))), [("alias", "Globals")]);
    let once = with("/Globals/Function/DeploymentPreference", "Type", json!("AllAtOnce"));
    assert_eq!(named(&check_rollout(&once)), [("canary", "Globals")]);
    let blind = with("/Globals/Function/DeploymentPreference", "Alarms", json!([]));
    assert_eq!(named(&check_rollout(&blind)), [("canary", "Globals")]);
    let past = json!({"Fn::GetAtt": "ReceiverFunction.Arn"});
    let past = with("/Resources/WebhookIntegration/Properties", "IntegrationUri", past);
    assert_eq!(named(&check_rollout(&past)), [("alias-call", "WebhookIntegration")]);
    let stale = with("/Resources/JobFunction/Properties", "AutoPublishAliasAllProperties", Value::Null);
    assert_eq!(named(&check_rollout(&stale)), [("alias-settings", "JobFunction")]);
}

#[test]
fn logs_are_kept_and_encrypted_as_the_parameters_say() {
    assert_eq!(check_logs(&template()), []);
    assert_eq!(check_key_policy(&template()), []);
    let forever = with("/Resources/JobLogs/Properties", "RetentionInDays", Value::Null);
    assert_eq!(named(&check_logs(&forever)), [("log-group", "JobLogs")]);
    let plain = with("/Resources/ApiLogs/Properties", "KmsKeyId", Value::Null);
    assert_eq!(named(&check_logs(&plain)), [("log-group", "ApiLogs")]);
    let fewer = with("/Resources/KeyPolicy/Properties", "Roles", json!([{"Ref": "JobRole"}]));
    assert_eq!(check_key_policy(&fewer).len(), 7);
}

#[test]
fn the_parameters_are_there_with_their_defaults() {
    let template = template();
    let defaults = [
        ("Architecture", json!("arm64")),
        ("LogLevel", json!("info")),
        ("LogRetentionDays", json!(30)),
        ("AlarmTopicArn", json!("")),
        ("CustomDomainName", json!("")),
        ("PublicBaseUrl", json!("")),
        ("KmsKeyArn", json!("")),
        ("ThrottlingRate", json!(200)),
        ("ThrottlingBurst", json!(400)),
        ("DeploymentType", json!("Canary10Percent5Minutes")),
    ];
    for (name, default) in defaults {
        assert_eq!(template["Parameters"][name]["Default"], default, "{name}");
    }
    // Where the URL is signed, the receiver must know it: given outright, else by the custom domain.
    let url =
        &template["Resources"]["ReceiverFunction"]["Properties"]["Environment"]["Variables"]["HOOKLEDGER_PUBLIC_URL"];
    let domain = json!({"Fn::If": ["HasDomain", {"Fn::Sub": "https://${CustomDomainName}"}, ""]});
    assert_eq!(url, &json!({"Fn::If": ["HasPublicBaseUrl", {"Ref": "PublicBaseUrl"}, domain]}));
}

#[test]
fn samconfig_has_two_environments_of_known_parameters() {
    let config: toml::Table = SAMCONFIG.parse().unwrap();
    let parameters = template()["Parameters"].clone();
    let mut stacks = BTreeSet::new();
    for environment in ["dev", "prod"] {
        let deploy = &config[environment]["deploy"]["parameters"];
        assert!(stacks.insert(deploy["stack_name"].as_str().unwrap().to_owned()), "a stack of its own");
        assert_eq!(config[environment]["build"]["parameters"]["template_file"].as_str(), Some("infra/template.yaml"));
        for one in deploy["parameter_overrides"].as_array().unwrap() {
            let name = one.as_str().unwrap().split_once('=').unwrap().0;
            assert!(parameters[name].is_object(), "{environment}: {name} is no parameter");
        }
    }
    assert_eq!(config["prod"]["deploy"]["parameters"]["confirm_changeset"].as_bool(), Some(true));
}

#[test]
fn the_compose_file_starts_localstack_on_this_machine_only() {
    let compose = document::parse(COMPOSE).unwrap();
    let members: Vec<&str> = compose.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["services"]);
    let service = &compose["services"]["localstack"];
    let image = service["image"].as_str().unwrap();
    assert!(image.starts_with("localstack/localstack-pro:") && !image.ends_with(":latest"), "{image}: pin a version");
    for port in service["ports"].as_array().unwrap() {
        assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{port} listens on every interface");
    }
    let needed = [
        "apigatewayv2",
        "cloudformation",
        "cloudwatch",
        "dynamodb",
        "events",
        "iam",
        "lambda",
        "logs",
        "s3",
        "secretsmanager",
        "sqs",
    ];
    let services = service["environment"]["SERVICES"].as_str().unwrap();
    for name in needed {
        assert!(services.split(',').any(|one| one == name), "{name}");
    }
    assert!(service["healthcheck"]["test"].is_array());
}
