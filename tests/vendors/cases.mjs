// How each vendor's library signs or verifies. Every secret here is made up for these tests.
import crypto from "node:crypto";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const SIGNS = "library signs, server takes";
const VERIFIES = "send signs, library and server take";
const BOTH = "node:crypto signs, library and server take";
const ALONE = "node:crypto signs by the vendor's page, server takes";

const now = () => Math.floor(Date.now() / 1000);
const hex = (key, text, hash = "sha256") => crypto.createHmac(hash, key).update(text).digest("hex");
const must = (ok, what) => {
  if (!ok) throw new Error(`${what} refuses it`);
};
const json = { "content-type": "application/json" };
const form = { "content-type": "application/x-www-form-urlencoded" };

const ed25519 = crypto.generateKeyPairSync("ed25519");
const raw = ed25519.publicKey.export({ format: "jwk" }).x;
const p256 = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
const p256Spki = p256.publicKey.export({ format: "der", type: "spki" }).toString("base64");
const whsec = `whsec_${Buffer.from("vendors-only-not-a-secret").toString("base64")}`;
const adyenKey = crypto.createHash("sha256").update("vendors").digest("hex");

/// The server's environment.
export const secrets = {
  ACME_WEBHOOK_SECRET: whsec,
  SVIX_WEBHOOK_SECRET: whsec,
  STRIPE_WEBHOOK_SECRET: "whsec_vendors",
  GITHUB_WEBHOOK_SECRET: "vendors",
  SLACK_SIGNING_SECRET: "vendors",
  SHOPIFY_CLIENT_SECRET: "vendors",
  PADDLE_WEBHOOK_SECRET: "pdl_ntfset_vendors",
  TWILIO_AUTH_TOKEN: "vendors",
  SQUARE_SIGNATURE_KEY: "vendors",
  ZOOM_SECRET_TOKEN: "vendors",
  LINEAR_WEBHOOK_SECRET: "vendors",
  DISCORD_PUBLIC_KEY: Buffer.from(raw, "base64url").toString("hex"),
  FAL_JWKS: JSON.stringify({ keys: [{ kty: "OKP", crv: "Ed25519", x: raw }] }),
  MAILGUN_SIGNING_KEY: "vendors",
  RAZORPAY_WEBHOOK_SECRET: "vendors",
  ADYEN_HMAC_KEY: adyenKey,
  BRAINTREE_PRIVATE_KEY: "vendors",
  GITLAB_WEBHOOK_TOKEN: "vendors",
  SENDGRID_PUBLIC_KEY: p256Spki,
  SANITY_WEBHOOK_SECRET: "vendors",
  CUSTOM_WEBHOOK_SECRET: "vendors",
};

const standard = (library, slug, prefix) => ({
  slug,
  scheme: `standard-webhooks (${prefix})`,
  library,
  direction: SIGNS,
  make() {
    const { Webhook } = require(library);
    const [id, at, body] = ["msg_vendors", new Date(), JSON.stringify({ type: "vendors.test", data: {} })];
    const signature = new Webhook(whsec).sign(id, at, body);
    const stamp = String(Math.floor(at.getTime() / 1000));
    return { body, headers: { ...json, [`${prefix}-id`]: id, [`${prefix}-timestamp`]: stamp, [`${prefix}-signature`]: signature } };
  },
});

const stripe = {
  slug: "stripe",
  library: "stripe",
  direction: SIGNS,
  make() {
    const Stripe = require("stripe");
    const payload = JSON.stringify({ id: "evt_1", object: "event", type: "ping", created: now(), livemode: true });
    const header = new Stripe("sk_test_x").webhooks.generateTestHeaderString({ payload, secret: "whsec_vendors" });
    return { body: payload, headers: { ...json, "stripe-signature": header } };
  },
};

const github = {
  slug: "github",
  library: "@octokit/webhooks-methods",
  direction: SIGNS,
  async make() {
    const { sign } = await import("@octokit/webhooks-methods");
    const body = JSON.stringify({ zen: "Keep it logically awesome. 😀" });
    const signature = await sign("vendors", body);
    return { body, headers: { ...json, "x-hub-signature-256": signature, "x-github-delivery": "g-1", "x-github-event": "ping" } };
  },
};

const slack = {
  slug: "slack",
  library: "@slack/bolt",
  direction: VERIFIES,
  make(server) {
    const { verifySlackRequest } = require("@slack/bolt");
    const body = JSON.stringify({ type: "event_callback", event_id: "Ev1", event_time: now(), event: { type: "x" } });
    const headers = server.signed("slack", body);
    const read = { "x-slack-signature": headers["X-Slack-Signature"], "x-slack-request-timestamp": Number(headers["X-Slack-Request-Timestamp"]) };
    verifySlackRequest({ signingSecret: "vendors", body, headers: read });
    return { body, headers };
  },
};

const shopify = {
  slug: "shopify",
  library: "@shopify/shopify-api",
  direction: VERIFIES,
  async make(server) {
    await import("@shopify/shopify-api/adapters/node");
    const { shopifyApi } = await import("@shopify/shopify-api");
    const options = { apiKey: "k", apiSecretKey: "vendors", hostName: "x.example", apiVersion: "2025-10", isEmbeddedApp: false };
    const library = shopifyApi({ ...options, logger: { level: 0 } });
    const body = JSON.stringify({ id: 1 });
    const headers = server.signed("shopify", body, ["--type", "orders/create"]);
    const more = { "x-shopify-api-version": "2025-10", "x-shopify-shop-domain": "x.myshopify.com", "x-shopify-topic": "orders/create" };
    const all = { ...headers, ...more };
    const rawRequest = { method: "POST", url: "/webhooks/shopify", headers: Object.fromEntries(Object.entries(all).map(([k, v]) => [k.toLowerCase(), v])) };
    const verdict = await library.webhooks.validate({ rawBody: body, rawRequest });
    must(verdict.valid, `the library (${verdict.reason ?? ""})`);
    return { body, headers: all };
  },
};

const paddle = {
  slug: "paddle",
  library: "@paddle/paddle-node-sdk",
  direction: VERIFIES,
  async make(server) {
    const { Paddle } = require("@paddle/paddle-node-sdk");
    const event = { event_id: "evt_1", event_type: "address.created", occurred_at: new Date().toISOString(), notification_id: "ntf_1", data: {} };
    const body = JSON.stringify(event);
    const headers = server.signed("paddle", body);
    must(await new Paddle("k").webhooks.isSignatureValid(body, "pdl_ntfset_vendors", headers["Paddle-Signature"]), "the library");
    return { body, headers };
  },
};

const twilio = {
  slug: "twilio",
  library: "twilio",
  direction: SIGNS,
  make(server) {
    const library = require("twilio");
    const params = { MessageSid: "SM1", MessageStatus: "delivered", To: "+15551234", Body: "a b&c é" };
    const url = `${server.url}/webhooks/twilio`;
    const signature = library.getExpectedTwilioSignature("vendors", url, params);
    const body = new URLSearchParams(params).toString();
    return { body, changed: body.replace("delivered", "failed"), headers: { ...form, "x-twilio-signature": signature } };
  },
};

const square = {
  slug: "square",
  library: "square",
  direction: VERIFIES,
  async make(server) {
    const { WebhooksHelper } = require("square");
    const body = JSON.stringify({ event_id: "e1", type: "payment.created", created_at: new Date().toISOString() });
    const headers = server.signed("square", body);
    const signatureHeader = headers["x-square-hmacsha256-signature"];
    const notificationUrl = `${server.url}/webhooks/square`;
    must(await WebhooksHelper.verifySignature({ requestBody: body, signatureHeader, signatureKey: "vendors", notificationUrl }), "the library");
    return { body, headers };
  },
};

const razorpay = {
  slug: "razorpay",
  library: "razorpay",
  direction: VERIFIES,
  make(server) {
    const Razorpay = require("razorpay");
    const body = JSON.stringify({ event: "payment.captured", created_at: now(), payload: {} });
    const headers = server.signed("razorpay", body);
    must(Razorpay.validateWebhookSignature(body, headers["X-Razorpay-Signature"], "vendors"), "the library");
    return { body, headers };
  },
};

const linear = {
  slug: "linear",
  library: "@linear/sdk",
  direction: VERIFIES,
  make(server) {
    const { LinearWebhookClient } = require("@linear/sdk/webhooks");
    const stamp = Date.now();
    const body = JSON.stringify({ type: "Issue", action: "create", createdAt: new Date().toISOString(), webhookTimestamp: stamp });
    const headers = server.signed("linear", body);
    must(new LinearWebhookClient("vendors").verify(Buffer.from(body), headers["Linear-Signature"], stamp), "the library");
    return { body, headers };
  },
};

const adyen = {
  slug: "adyen",
  library: "@adyen/api-library",
  direction: SIGNS,
  make() {
    const { hmacValidator: Validator } = require("@adyen/api-library");
    const item = {
      pspReference: "7914073381342284", originalReference: "", merchantAccountCode: "TestMerchant",
      merchantReference: "TestPayment-1", amount: { value: 1130, currency: "EUR" }, eventCode: "AUTHORISATION",
      success: "true", eventDate: new Date().toISOString(),
    };
    item.additionalData = { hmacSignature: new Validator().calculateHmac(item, adyenKey) };
    const body = JSON.stringify({ live: "false", notificationItems: [{ NotificationRequestItem: item }] });
    return { body, changed: body.replace("1130", "1131"), headers: json };
  },
};

const braintree = {
  slug: "braintree",
  library: "braintree",
  direction: SIGNS,
  make() {
    const library = require("braintree");
    const keys = { merchantId: "m", publicKey: "p", privateKey: "vendors" };
    const gateway = new library.BraintreeGateway({ environment: library.Environment.Sandbox, ...keys });
    const fields = gateway.webhookTesting.sampleNotification(library.WebhookNotification.Kind.SubscriptionWentPastDue, "s1");
    const changed = { ...fields, bt_payload: fields.bt_payload.replace(/^../, "AA") };
    return { body: new URLSearchParams(fields).toString(), changed: new URLSearchParams(changed).toString(), headers: form };
  },
};

const discord = {
  slug: "discord",
  library: "discord-interactions",
  direction: BOTH,
  async make() {
    const { verifyKey } = require("discord-interactions");
    const event = { type: "ENTITLEMENT_CREATE", timestamp: new Date().toISOString(), data: {} };
    const [stamp, body] = [String(now()), JSON.stringify({ version: 1, type: 1, event })];
    const signature = crypto.sign(null, Buffer.from(stamp + body), ed25519.privateKey).toString("hex");
    must(await verifyKey(body, signature, stamp, secrets.DISCORD_PUBLIC_KEY), "the library");
    return { body, headers: { ...json, "x-signature-ed25519": signature, "x-signature-timestamp": stamp } };
  },
};

const sendgrid = {
  slug: "sendgrid",
  library: "@sendgrid/eventwebhook",
  direction: BOTH,
  make() {
    const { EventWebhook } = require("@sendgrid/eventwebhook");
    const library = new EventWebhook();
    const [stamp, body] = [String(now()), JSON.stringify([{ event: "delivered", sg_event_id: "s1", timestamp: now() }]) + "\r\n"];
    const signature = crypto.sign("sha256", Buffer.from(stamp + body), p256.privateKey).toString("base64");
    must(library.verifySignature(library.convertPublicKeyToECDSA(p256Spki), body, signature, stamp), "the library");
    const name = "x-twilio-email-event-webhook";
    return { body, changed: body.trimEnd(), headers: { ...json, [`${name}-signature`]: signature, [`${name}-timestamp`]: stamp } };
  },
};

const sanity = {
  slug: "sanity",
  library: "@sanity/webhook",
  direction: SIGNS,
  async make() {
    const { encodeSignatureHeader } = require("@sanity/webhook");
    const body = JSON.stringify({ _id: "doc1" });
    const header = await encodeSignatureHeader(body, Date.now(), "vendors");
    return { body, headers: { ...json, "sanity-webhook-signature": header, "idempotency-key": "s1", "sanity-operation": "create" } };
  },
};

const zoom = {
  slug: "zoom",
  direction: ALONE,
  make() {
    const [stamp, body] = [String(now()), JSON.stringify({ event: "meeting.started", event_ts: Date.now(), payload: {} })];
    const signature = `v0=${hex("vendors", `v0:${stamp}:${body}`)}`;
    return { body, headers: { ...json, "x-zm-signature": signature, "x-zm-request-timestamp": stamp } };
  },
};

const mailgun = {
  slug: "mailgun",
  direction: ALONE,
  make() {
    const [timestamp, token] = [String(now()), crypto.randomBytes(25).toString("hex")];
    const signature = { timestamp, token, signature: hex("vendors", timestamp + token) };
    const event = { event: "delivered", id: "e1" };
    const body = JSON.stringify({ signature, "event-data": event });
    return { body, changed: body.replace(token, token.replace(/^./, "x")), headers: json };
  },
};

const fal = {
  slug: "fal",
  direction: ALONE,
  make() {
    const [stamp, body] = [String(now()), JSON.stringify({ request_id: "r-1", status: "OK", payload: {} })];
    const hash = crypto.createHash("sha256").update(body).digest("hex");
    const signature = crypto.sign(null, Buffer.from(["r-1", "user_1", stamp, hash].join("\n")), ed25519.privateKey).toString("hex");
    const named = { "x-fal-webhook-request-id": "r-1", "x-fal-webhook-user-id": "user_1" };
    return { body, headers: { ...json, ...named, "x-fal-webhook-timestamp": stamp, "x-fal-webhook-signature": signature } };
  },
};

const gitlab = {
  slug: "gitlab",
  scheme: "gitlab-token",
  direction: ALONE,
  make() {
    const headers = { ...json, "x-gitlab-event": "Push Hook", "idempotency-key": "i-1" };
    const body = JSON.stringify({ object_kind: "push" });
    // The token signs nothing, so it is the token that is changed.
    return { body, headers: { ...headers, "x-gitlab-token": "vendors" }, changed: body, changedHeaders: { ...headers, "x-gitlab-token": "other" } };
  },
};

const custom = {
  slug: "custom",
  scheme: "hmac (configured)",
  direction: ALONE,
  make() {
    const [stamp, body] = [String(now()), JSON.stringify({ id: "c1", type: "x" })];
    return { body, headers: { ...json, "x-custom-timestamp": stamp, "x-custom-signature": `v1=${hex("vendors", `${stamp}.${body}`)}` } };
  },
};

export const cases = [
  standard("standardwebhooks", "acme", "webhook"), standard("svix", "svix", "svix"), stripe, github, slack, shopify, paddle,
  twilio, square, zoom, linear, discord, fal, mailgun, razorpay, adyen, braintree, gitlab, sendgrid, sanity, custom,
];
