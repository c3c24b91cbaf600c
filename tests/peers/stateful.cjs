// stripe-stateful-mock on a free port of this machine alone; its own program listens on every address.
const { createExpressApp } = require("stripe-stateful-mock");

const server = createExpressApp().listen(0, "127.0.0.1", () => {
  console.log(`listening ${server.address().port}`);
});
