"""What is done to the deployed system, and what must be seen. Expected numbers are worked out by hand: the wallet gets
100.00, and each of the eight jobs is charged 0.0087, once. A step that fails does not stop those after it."""

import json

from cloud import wait_for
from tool import TENANT, WALLET, completed, created

SETTLED = "billing-settled"
QUEUES = ("JobQueue", "BillingQueue", "OutboundQueue")
# The relay looks at a receipt when its minute is two minutes old, and runs every minute.
RELAY_SECONDS = 300


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, expected {wanted!r}")


class Steps:
    def __init__(self, cloud, tool_of, enforced, app):
        """`tool_of` makes the program speak as the caller with an access key; `enforced` says that IAM is; `app` is what
        events are sent on to, where the functions can reach it."""
        self.app = app
        self.cloud, self.tool, self.tool_of, self.enforced = cloud, tool_of(), tool_of, enforced
        self.first = completed("j1")

    def all(self):
        """The steps in their order: what is done, and the function that does it. Those that wait for the relay begin
        early and are looked at last."""
        return [
            ("wallet created and funded; again: no second time", self.fund),
            ("happy path: 202, job completed, 0.0087 charged", self.happy),
            ("messages lost after the 202 (seen below)", self.lose_messages),
            ("event before its job: deferred (seen below)", self.early_event),
            ("a message that its queue gave up: the dead-letter consumer defers its operation (seen below)", self.dead_letter),
            ("an event sent on over HTTP, the answer lost (seen below)", self.sent_on),
            ("the same event four times more: 200 duplicate, no effect", self.duplicates),
            ("50 concurrent copies: one 202, 49 times 200, one charge", self.concurrent),
            ("a wrong signature: 401, listed as rejected", self.wrong_signature),
            ("a body that is no JSON: 200 quarantined", self.quarantined),
            ("a poisoned message: passed, the one behind it is done", self.poison),
            ("billing is down: the job completes, the money follows", self.outage),
            ("a charge above the hold: review, then approved", self.overage),
            ("reconciler: a run by request", self.reconciler),
            ("relay by its schedule: the early event is settled", self.early_settled),
            ("relay by its schedule: the lost messages are found", self.lost_found),
            ("relay by its schedule: the operation of the dead letter is settled", self.dead_letter_settled),
            ("relay by its schedule: sent on again, the same bytes under the same id, signed, and settled", self.sent_again),
            ("reconciler by its two schedules: both passes and the daily run", self.reconciler_scheduled),
            ("nothing waits, no review is open", self.at_rest),
            ("audit clean; 99.9304 available, nothing held", self.books),
            ("the control policies: reader, submitter, operator, finance", self.callers),
            ("each function answered with its own binary, none was denied a call", self.logs),
        ]

    def settle(self, job, event, answers, *options, body=None):
        """Sends a job's success and waits until its money has moved."""
        expect("answers", self.tool.send(event, body or completed(job), *options), answers)
        wait_for(f"{job} is settled", lambda: self.tool.job(job)["status"] == SETTLED)
        expect("captured", [one["captured"] for one in self.tool.job(job)["settlements"]], ["0.008700"])

    def fund(self):
        self.tool.run("wallet", "create", TENANT, WALLET, "--currency", "USD")
        for _ in range(2):
            self.tool.run("wallet", "fund", TENANT, WALLET, "100.00", "--reference", "inv-7")
        expect("available", self.tool.wallet()["available"], "100.000000")

    def happy(self):
        self.tool.submit("j1")
        self.settle("j1", "e2e-1", {"202 accepted": 1}, body=self.first)
        expect("operations", [one["state"] for one in self.tool.json("explain", "acme/e2e-1")["operations"]], ["done", "done"])

    def lose_messages(self):
        """The worst that a queue can do: it took the messages, and they are gone."""
        self.tool.submit("j2")
        sources = ("JobFunctionQueue", "BillingFunctionQueue")
        for source in sources:
            self.cloud.switch(source, on=False)
        try:
            expect("answers", self.tool.send("e2e-2", completed("j2")), {"202 accepted": 1})
            for queue in ("JobQueue", "BillingQueue"):
                wait_for(f"{queue} holds a message", lambda queue=queue: self.cloud.waiting(queue) == 1)
                self.cloud.client["sqs"].purge_queue(QueueUrl=self.cloud.ids[queue])
                wait_for(f"{queue} is empty", lambda queue=queue: self.cloud.waiting(queue) == 0)
        finally:
            for source in sources:
                self.cloud.switch(source, on=True)

    def early_event(self):
        expect("answers", self.tool.send("e2e-3", completed("j3")), {"202 accepted": 1})
        states = lambda: {one["state"] for one in self.tool.json("explain", "acme/e2e-3")["operations"]}
        wait_for("both operations are deferred", lambda: states() == {"retrying"})
        self.tool.submit("j3")

    def dead_letter(self):
        """Its consumer was down until the queue gave the message up."""
        self.tool.submit("j8")
        self.cloud.switch("BillingFunctionQueue", on=False)
        try:
            expect("answers", self.tool.send("e2e-8", completed("j8")), {"202 accepted": 1})
            wait_for("BillingQueue holds a message", lambda: self.cloud.waiting("BillingQueue") == 1)
            self.cloud.give_up("BillingQueue", "BillingDeadLetters")
            deferred = lambda: [
                line for line in self.cloud.lines("DeadletterFunction")
                if line.get("event") == "acme/e2e-8" and line.get("outcome") == "deferred"
            ]
            wait_for("the dead-letter consumer defers it", deferred)
            wait_for("no dead letter is left", lambda: self.cloud.waiting("BillingDeadLetters") == 0)
        finally:
            self.cloud.switch("BillingFunctionQueue", on=True)

    def sent_on(self):
        if not self.app:
            return "not looked at: this endpoint's functions do not reach this machine over plain HTTP"
        expect("answers", self.tool.send("e2e-9", created("a1")), {"202 accepted": 1})
        wait_for("the application is asked", lambda: len(self.app.requests) == 1)

    def sent_again(self):
        if not self.app:
            return "not looked at, as above"
        state = lambda: [one["state"] for one in self.tool.json("explain", "acme/e2e-9")["operations"]]
        wait_for("the forward is done", lambda: state() == ["done"], RELAY_SECONDS)
        (path, first, body), (_, second, again) = self.app.requests
        expect("path and body", (path, again), ("/events", body))
        expect("ids", second["webhook-id"], first["webhook-id"])
        expect("attempts", [one["hookledger-attempt"] for one in (first, second)], ["1", "2"])
        expect("signed", [self.app.is_signed(*one[1:]) for one in self.app.requests], [True, True])
        expect("data", json.loads(body)["data"], {"asset": "a1"})

    def duplicates(self):
        expect("answers", self.tool.send("e2e-1", self.first, "--times", "4"), {"200 duplicate": 4})
        expect("transitions", len(self.tool.job("j1")["transitions"]), 1)

    def concurrent(self):
        self.tool.submit("j4")
        self.settle("j4", "e2e-4", {"202 accepted": 1, "200 duplicate": 49}, "--times", "50", "--concurrency", "50")

    def wrong_signature(self):
        answers = self.tool.send("e2e-401", completed("j1"), "--secret", "whsec_d3Jvbmcgb24gcHVycG9zZQ==", exit_code=1)
        expect("answers", list(answers), ["401 invalid-signature"])
        wait_for("the refusal is listed", lambda: len(self.tool.json("rejected", "acme")["rejected"]) >= 1)

    def quarantined(self):
        expect("answers", self.tool.send("e2e-bad", '{"type": "job.completed",'), {"200 quarantined": 1})

    def poison(self):
        for queue in QUEUES:
            self.cloud.put_message(queue, "no operation at all", "poison")
        self.tool.submit("j5")
        self.settle("j5", "e2e-5", {"202 accepted": 1})
        for queue in QUEUES:
            wait_for(f"{queue} is empty", lambda queue=queue: self.cloud.waiting(queue) == 0)

    def outage(self):
        self.tool.submit("j6")
        self.cloud.switch("BillingFunctionQueue", on=False)
        try:
            expect("answers", self.tool.send("e2e-6", completed("j6")), {"202 accepted": 1})
            wait_for("the job completes", lambda: len(self.tool.job("j6")["transitions"]) == 1)
            expect("settlements meanwhile", self.tool.job("j6")["settlements"], [])
            expect("status meanwhile", self.tool.job("j6")["status"], "billing-pending")
        finally:
            self.cloud.switch("BillingFunctionQueue", on=True)
        wait_for("j6 is settled", lambda: self.tool.job("j6")["status"] == SETTLED)

    def overage(self):
        self.tool.submit("j7", hold="0.001")
        expect("answers", self.tool.send("e2e-7", completed("j7")), {"202 accepted": 1})
        listed = lambda: [one["id"] for one in self.tool.json("reviews", "--class", "overage")["reviews"]]
        wait_for("the review is open", lambda: listed() == ["settle-usage:acme/e2e-7"])
        self.tool.run(
            "reviews", "resolve", "settle-usage:acme/e2e-7", "--action", "approve", "--alternative", "available",
            "--reason", "agreed with the customer",
        )
        wait_for("j7 is settled", lambda: self.tool.job("j7")["status"] == SETTLED, RELAY_SECONDS)
        expect("captured", [one["captured"] for one in self.tool.job("j7")["settlements"]], ["0.008700"])

    def reconciler(self):
        told = self.tool.json("reconcile", "--wallet", TENANT, WALLET, "--reason", "end to end")
        expect("open cases", told.get("cases", []), [])

    def early_settled(self):
        wait_for("j3 is settled", lambda: self.tool.job("j3")["status"] == SETTLED, RELAY_SECONDS)

    def lost_found(self):
        wait_for("j2 is settled", lambda: self.tool.job("j2")["status"] == SETTLED, RELAY_SECONDS)
        relay = [line for line in self.cloud.lines("RelayFunction") if line.get("message") == "relay"]
        expect("operations that the relay's runs found", sum(line["found"] for line in relay), 2)

    def dead_letter_settled(self):
        wait_for("j8 is settled", lambda: self.tool.job("j8")["status"] == SETTLED, RELAY_SECONDS)

    def reconciler_scheduled(self):
        """Here both schedules are due every minute (see `cloud`); what they send is the template's."""
        lines = lambda: [line for line in self.cloud.lines("ReconcilerFunction") if line.get("message") == "reconciled"]
        for name in ("pass-2h-", "pass-26h-", "daily-"):
            done = lambda name=name: any(line["run"].startswith(name) for line in lines())
            wait_for(f"a part of a run {name}... is done", done, RELAY_SECONDS)
        failed = [line["run"] for line in lines() if line["state"] != "Done"]
        expect("parts given up", failed, [])

    def at_rest(self):
        wait_for("the queues are empty", lambda: sum(map(self.cloud.waiting, QUEUES)) == 0)
        self.tool.run("status")

    def books(self):
        wallet = self.tool.wallet()
        expect("wallet", (wallet["available"], wallet["held"], wallet["sequence"]), ("99.930400", "0.000000", 9))
        self.tool.run("audit", TENANT, WALLET)

    def callers(self):
        """Each policy lets its own calls through and refuses the others'. All of them change nothing: they were made
        before under the same keys, or are refused."""
        if not self.enforced:
            return "not looked at: this endpoint does not enforce IAM"
        show = ("wallet", "show", TENANT, WALLET)
        fund = ("wallet", "fund", TENANT, WALLET, "100.00", "--reference", "inv-7")
        resume = ("resume", "billing", "--reason", "it was not paused")
        submit = (
            "job", "submit", TENANT, "j1", "--provider", "acme", "--ref", "p-j1", "--model", "small-1", "--wallet",
            WALLET, "--hold", "5.00",
        )
        calls = {"Reader": show, "Submitter": submit, "Operator": resume, "Finance": fund}
        for name in calls:
            tool = self.tool_of(self.cloud.caller(f"e2e-{name.lower()}", f"Control{name}Policy"))
            for owner, call in calls.items():
                told = tool.run(*call, exit_code=0 if owner == name else 1, with_errors=True)
                if owner != name and "403" not in told:
                    raise AssertionError(f"{name} was refused {call[:2]} otherwise than by 403: {told}")

    def logs(self):
        missing = [name for name in self.cloud.functions if not self.cloud.lines(name)]
        expect("functions without a log line of their own", missing, [])
        denied = [
            (name, line["message"]) for name in self.cloud.functions for line in self.cloud.lines(name)
            if "AccessDenied" in json.dumps(line)
        ]
        expect("calls that a role does not allow", denied[:3], [])
