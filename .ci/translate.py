"""Turns a SAM template into the CloudFormation that AWS would make of it.

Offline and without credentials: `sam validate --lint` reads the SAM form only
and sees no error that spans resources (a batch of 50 on a FIFO queue, a
visibility timeout below the function's). cfn-lint sees them in the result.

Usage: translate.py TEMPLATE OUTPUT
"""

import copy
import json
import os
import sys

# The translator asks a boto session for a region; any will do, none is called.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

import boto3
from samtranslator.yaml_helper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.public.exceptions import InvalidDocumentException
from samtranslator.public.translator import Translator


def local_code_as_uploaded(template):
    """`sam deploy` uploads CodeUri and writes where to; stand in for that."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/key"


def roles_that_differ(template, plain):
    """Roles of the result that are not, word for word, those of the template: the tests judge the template's own.
    The one that SAM adds is CodeDeploy's, for shifting traffic."""
    of = lambda document: {name: one for name, one in document["Resources"].items() if one["Type"] == "AWS::IAM::Role"}
    ours, all_roles = of(template), of(plain)
    all_roles.pop("CodeDeployServiceRole", None)
    differ = [name for name in ours.keys() | all_roles.keys() if ours.get(name) != all_roles.get(name)]
    for name, one in plain["Resources"].items():
        if one["Type"] == "AWS::Lambda::Function" and one["Properties"]["Role"].get("Fn::GetAtt", [None])[0] not in ours:
            differ.append(name)
    return sorted(differ)


def main(source, output):
    with open(source, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    local_code_as_uploaded(template)
    before = copy.deepcopy(template)
    translator = Translator({}, Parser(), boto_session=boto3.Session(region_name="us-east-1"))
    try:
        plain = translator.translate(sam_template=template, parameter_values={})
    except InvalidDocumentException as error:
        print(f"{source}: {error.message}", file=sys.stderr)
        for cause in error.causes:
            print(f"  {cause.message}", file=sys.stderr)
        return 1
    if differ := roles_that_differ(before, plain):
        print(f"{source}: other roles after the translation: {', '.join(differ)}", file=sys.stderr)
        return 1
    with open(output, "w", encoding="utf-8") as file:
        json.dump(plain, file, indent=2)
    print(f"translated {len(template['Resources'])} resources into {len(plain['Resources'])}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: translate.py TEMPLATE OUTPUT")
    sys.exit(main(sys.argv[1], sys.argv[2]))
