"""The emulator as the test sees it: deploys the stack, switches event sources, reads the functions' logs.

Everything goes through boto3 and one endpoint, so that ministack, LocalStack or another emulator are the same here.
"""

import json
import platform
import time
import zipfile
from pathlib import Path

import boto3
from botocore.config import Config

STACK = "hookledger-e2e"
BUCKET = "hookledger-e2e-code"
SECRET = "hookledger/e2e/providers"
DEPLOY_SECONDS = 180


def on_aws_only(resource):
    """Whether an emulator cannot have it: traffic shifting, and alarms over the sum of several metrics."""
    kind, properties = resource["Type"], resource.get("Properties", {})
    return kind.startswith("AWS::CodeDeploy::") or (kind == "AWS::CloudWatch::Alarm" and "Metrics" in properties)


class Cloud:
    def __init__(self, endpoint):
        self.endpoint = endpoint
        config = Config(retries={"max_attempts": 3}, connect_timeout=5, read_timeout=150)
        common = {
            "endpoint_url": endpoint, "region_name": "us-east-1", "config": config,
            "aws_access_key_id": "test", "aws_secret_access_key": "test",
        }
        names = ("cloudformation", "s3", "lambda", "sqs", "logs", "secretsmanager", "apigatewayv2", "iam")
        self.client = {name: boto3.client(name, **common) for name in names}
        self.ids = {}
        self.functions = []

    def upload(self, functions, binaries, out):
        """Zips each binary as `bootstrap` and uploads it; gives back the key of each function's logical id."""
        self.client["s3"].create_bucket(Bucket=BUCKET)
        keys = {}
        for name in functions:
            archive = out / f"{name}.zip"
            entry = zipfile.ZipInfo("bootstrap", date_time=(2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
                file.writestr(entry, (binaries / f"hookledger-{name}").read_bytes())
            key = f"{name}.zip"
            self.client["s3"].upload_file(str(archive), BUCKET, key)
            archive.unlink()
            keys[f"{name.capitalize()}Function"] = key
        return keys

    def deploy(self, template, keys, secrets, inside, destination):
        """Creates the stack and waits until it stands. `destination` are the parameters of what events are sent on to."""
        left_out = [name for name, one in template["Resources"].items() if on_aws_only(one)]
        for name in left_out:
            del template["Resources"][name]
        for name, one in template["Resources"].items():
            one.pop("UpdatePolicy", None)
            if one["Type"] == "AWS::Events::Rule":
                # Nobody waits for a quarter of an hour or for half past three; when they are due is all that differs.
                one["Properties"]["ScheduleExpression"] = "rate(1 minute)"
            if one["Type"] == "AWS::Lambda::Function":
                one["Properties"]["Code"] = {"S3Bucket": BUCKET, "S3Key": keys[name]}
        self.client["secretsmanager"].create_secret(Name=SECRET, SecretString=json.dumps(secrets))
        self.client["s3"].put_object(Bucket=BUCKET, Key="template.json", Body=json.dumps(template))
        parameters = {
            "ProviderSecret": SECRET, "EndpointUrl": inside, "LogLevel": "info",
            "Architecture": "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",
            **destination,
        }
        formation = self.client["cloudformation"]
        formation.create_stack(
            StackName=STACK, TemplateURL=f"{self.endpoint}/{BUCKET}/template.json", Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        )
        until = time.monotonic() + DEPLOY_SECONDS
        while (stack := formation.describe_stacks(StackName=STACK)["Stacks"][0])["StackStatus"] == "CREATE_IN_PROGRESS":
            if time.monotonic() > until:
                raise RuntimeError(f"the stack does not stand after {DEPLOY_SECONDS} s")
            time.sleep(0.5)
        if stack["StackStatus"] != "CREATE_COMPLETE":
            events = formation.describe_stack_events(StackName=STACK)["StackEvents"]
            failed = [f"{e['LogicalResourceId']}: {e.get('ResourceStatusReason')}" for e in events if "FAILED" in e["ResourceStatus"]]
            why = "; ".join(failed) or stack.get("StackStatusReason") or "see the emulator's log"
            raise RuntimeError(f"{stack['StackStatus']}: {why}")
        resources = formation.describe_stack_resources(StackName=STACK)["StackResources"]
        self.ids = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}
        self.functions = sorted(one["LogicalResourceId"] for one in resources if one["ResourceType"] == "AWS::Lambda::Function")
        return len(resources), left_out

    def api_host(self):
        """The host name by which the emulator knows the API."""
        url = self.client["apigatewayv2"].get_api(ApiId=self.ids["Api"])["ApiEndpoint"]
        return url.split("://", 1)[1]

    def caller(self, name, policy):
        """A user with one of the stack's policies; its access key."""
        iam = self.client["iam"]
        iam.create_user(UserName=name)
        iam.attach_user_policy(UserName=name, PolicyArn=self.ids[policy])
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return key["AccessKeyId"], key["SecretAccessKey"]

    def switch(self, logical_id, on):
        """Stops or starts an event source, as an outage of its consumer would."""
        client, uuid = self.client["lambda"], self.ids[logical_id]
        client.update_event_source_mapping(UUID=uuid, Enabled=on)
        wanted = "Enabled" if on else "Disabled"
        for _ in range(60):
            if client.get_event_source_mapping(UUID=uuid)["State"] == wanted:
                return
            time.sleep(0.5)
        raise RuntimeError(f"{logical_id} is not {wanted}")

    def put_message(self, logical_id, body, group):
        """Puts a message into a queue of the stack."""
        self.client["sqs"].send_message(
            QueueUrl=self.ids[logical_id], MessageBody=body, MessageGroupId=group, MessageDeduplicationId=group,
        )

    def give_up(self, source, dead_letters):
        """Moves the messages of a queue to its dead letters, as SQS does after too many receives."""
        sqs = self.client["sqs"]
        told = sqs.receive_message(
            QueueUrl=self.ids[source], MaxNumberOfMessages=10, WaitTimeSeconds=5, AttributeNames=["All"],
        )
        for message in told["Messages"]:
            of = message["Attributes"]
            sqs.send_message(
                QueueUrl=self.ids[dead_letters], MessageBody=message["Body"], MessageGroupId=of["MessageGroupId"],
                MessageDeduplicationId=of["MessageDeduplicationId"],
            )
            sqs.delete_message(QueueUrl=self.ids[source], ReceiptHandle=message["ReceiptHandle"])

    def waiting(self, logical_id):
        """How many messages a queue holds, those in flight included."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.client["sqs"].get_queue_attributes(QueueUrl=self.ids[logical_id], AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)

    def lines(self, logical_id):
        """The function's own log lines (JSON objects), oldest first."""
        group = self.ids[logical_id.replace("Function", "Logs")]
        found = []
        for page in self.client["logs"].get_paginator("filter_log_events").paginate(logGroupName=group):
            for event in page["events"]:
                for line in event["message"].splitlines():
                    if line.startswith("{"):
                        found.append(json.loads(line))
        return found


def wait_for(what, check, seconds=60):
    """The first true value of `check`; fails after so many seconds."""
    until = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.5)


def read_template(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))
