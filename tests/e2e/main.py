"""Deploys, drives, looks, and prints a table; see `run`. Exit codes: 0 every step is ok, 1 one failed."""

import argparse
import base64
import json
import os
import sys
import time
from pathlib import Path

import gateway
from app import App
from cloud import Cloud, read_template
from steps import Steps
from tool import Tool


def parse():
    parser = argparse.ArgumentParser()
    for name in ("--endpoint", "--inside", "--template", "--binaries", "--out", "--enforced"):
        parser.add_argument(name, required=True)
    parser.add_argument("functions", nargs="+")
    return parser.parse_args()


class Table:
    def __init__(self):
        self.failed = 0

    def step(self, what, run):
        """Runs one step and prints its row."""
        began = time.monotonic()
        try:
            detail = run()
            mark, note = "ok", detail or ""
        except Exception as error:  # whatever goes wrong is that step's failure, and the next one is tried
            self.failed += 1
            mark, note = "FAILED", f"{type(error).__name__}: {error}"
        print(f"{mark:7}{time.monotonic() - began:6.1f} s  {what}{'  ' + note if note else ''}", flush=True)
        return mark == "ok"


def write_logs(cloud, out):
    """The functions' own lines into files, and one of each kind on the screen."""
    counts = {}
    for name in cloud.functions:
        lines = cloud.lines(name)
        counts[name] = len(lines)
        (out / f"{name}.log").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        if lines:
            shown = {key: value for key, value in lines[-1].items() if key != "_aws"}
            print(f"  {name} ({len(lines)} lines): {json.dumps(shown)}")
    return counts


def main():
    args = parse()
    out, binaries = Path(args.out), Path(args.binaries)
    cloud, table, began = Cloud(args.endpoint), Table(), time.monotonic()
    secret, app_secret = ("whsec_" + base64.b64encode(os.urandom(24)).decode() for _ in range(2))
    # Plain HTTP goes to this machine only, so functions that run elsewhere, in containers, do not reach it.
    app = App(app_secret) if args.inside == args.endpoint else None
    destination = {"AppUrl": app.url, "AppWebhookSecret": app_secret} if app else {}
    # Every profile's secret must be there; the sample provider's is the one that is used.
    names = ("ACME_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET", "GITHUB_WEBHOOK_SECRET")
    secrets = dict.fromkeys(names, secret)

    def deploy():
        keys = cloud.upload(args.functions, binaries, out)
        count, left_out = cloud.deploy(read_template(args.template), keys, secrets, args.inside, destination)
        return f"{count} resources" + (f"; not on an emulator: {', '.join(left_out)}" if left_out else "")

    if not table.step("the stack is deployed from the translated template", deploy):
        return 1
    host = cloud.api_host()

    def tool(key=("test", "test")):
        return Tool(binaries / "hookledger", gateway.start(args.endpoint, host, key), secret, out)

    for what, run in Steps(cloud, tool, args.enforced == "true", app).all():
        table.step(what, run)
    print("the functions' last log lines (all of them in target/e2e/):")
    write_logs(cloud, out)
    hidden = [one.removeprefix("whsec_") for one in (secret, app_secret)]
    logs = {path.name: path.read_text(errors="replace") for path in out.glob("*.log")}
    leaked = [name for name, text in logs.items() if any(one in text for one in hidden)]
    if leaked:
        table.failed += 1
        print(f"FAILED  a signing secret stands in {', '.join(leaked)}")
    print(f"{'every step ok' if not table.failed else f'{table.failed} FAILED'} ({time.monotonic() - began:.0f} s)")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
