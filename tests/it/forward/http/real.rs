//! The real client over real loopback HTTP: a server that answers, saves and then says nothing, breaks off, talks
//! nonsense, redirects, or is not there.

use std::sync::Mutex;

use runtime::call::HttpsCaller;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Answer,
    SilentAfter,
    BreakOff,
    Nonsense,
    Redirect,
    Endless,
    /// Not now, with this status and these words on when.
    Busy(&'static str, &'static str),
}

/// A server on this machine with idempotency keys; each connection acts as the script says.
#[derive(Debug, Default)]
struct Server {
    script: Mutex<Vec<Act>>,
    /// Keys in the order of the requests.
    asked: Mutex<Vec<String>>,
    /// Keys of effects that exist.
    effects: Mutex<Vec<String>>,
}

async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some(head.to_owned());
        }
    }
}

impl Server {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(head) = request(&mut stream).await else { continue };
            let key = head.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap().to_owned();
            assert!(head.starts_with("POST /v1/jobs HTTP/1.1") && head.contains("authorization: Bearer token-canary"));
            self.asked.lock().unwrap().push(key.clone());
            let act = {
                let mut script = self.script.lock().unwrap();
                if script.is_empty() { Act::Answer } else { script.remove(0) }
            };
            if !matches!(act, Act::Redirect | Act::Busy(..)) && !self.effects.lock().unwrap().contains(&key) {
                self.effects.lock().unwrap().push(key);
            }
            let endless = "x".repeat(200_000);
            let text = match act {
                Act::Answer => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"id\":\"7\"}",
                Act::SilentAfter => {
                    open.push(stream);
                    continue;
                }
                Act::BreakOff => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"id",
                Act::Nonsense => "not HTTP at all\r\n\r\n",
                Act::Redirect => "HTTP/1.1 307 Temporary Redirect\r\nlocation: /v1/jobs\r\ncontent-length: 0\r\n\r\n",
                Act::Busy(status, when) => {
                    &format!("HTTP/1.1 {status} Not Now\r\nretry-after: {when}\r\ncontent-length: 0\r\n\r\n")
                }
                Act::Endless => &format!("HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n{endless}"),
            };
            let _ = stream.write_all(text.as_bytes()).await; // a client that hung up is its own affair
        }
    }
}

/// A world whose board is at this address of this machine; only one who says nothing is not waited for long.
async fn world_at(address: &str, act: Act) -> World {
    let timeout = if act == Act::SilentAfter { "timeout_ms = 300\n" } else { "" };
    let mut config = board_config(&format!("{KEYED}{timeout}"));
    config.addresses.insert("BOARD_URL".to_owned(), format!("http://{address}"));
    config.caller = Arc::new(HttpsCaller::new().unwrap());
    World::new(config).await.unwrap()
}

#[tokio::test]
async fn the_real_client_tells_an_answer_from_none() {
    for (act, note) in [
        (Act::Answer, ""),
        (Act::SilentAfter, "no answer in time"),
        (Act::BreakOff, "status 200, and the answer broke off"),
        (Act::Nonsense, "the connection broke"),
        (Act::Redirect, "status 307"),
        (Act::Endless, "status 200, and the answer broke off"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let world = world_at(&listener.local_addr().unwrap().to_string(), act).await;
        let server = Arc::new(Server { script: Mutex::new(vec![act]), ..Server::default() });
        let serving = tokio::spawn(server.clone().serve(listener));
        send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
        world.drain().await.unwrap();
        if act != Act::Answer {
            let shown = operation(&world, "d-1").await;
            assert_eq!(
                (&shown["state"], &shown["intent"]["state"]),
                (&json!("retrying"), &json!("uncertain")),
                "{act:?}"
            );
            assert_eq!(shown["note"], format!("http:board: {note}"), "{act:?}");
            world.minutes(2).await.unwrap();
        }
        let shown = operation(&world, "d-1").await;
        assert_eq!(
            (&shown["state"], &shown["intent"]["result"]["id"]),
            (&json!("done"), &json!("7")),
            "{act:?}: {shown}"
        );
        let asked = server.asked.lock().unwrap().clone();
        assert_eq!(
            asked.len(),
            if act == Act::Answer { 1 } else { 2 },
            "{act:?}: no redirect is followed, nothing repeated"
        );
        assert!(asked.iter().all(|key| key == HASH_OF_D1));
        assert_eq!(server.effects.lock().unwrap().len(), 1, "{act:?}");
        serving.abort();
    }
}

/// The waits of this world are seconds, and its relay runs every minute.
#[tokio::test]
async fn who_says_for_how_long_to_be_left_alone_is_left_alone() {
    let date = "Sun, 29 Nov 2026 12:02:00 GMT"; // in seconds it is heeded, as a date not
    for (status, when, held) in [("429", "120", true), ("503", "120", true), ("429", date, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let busy = Act::Busy(status, when);
        let world = world_at(&listener.local_addr().unwrap().to_string(), busy).await;
        let server = Arc::new(Server { script: Mutex::new(vec![busy]), ..Server::default() });
        let serving = tokio::spawn(server.clone().serve(listener));
        send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
        send(&world, "d-2", "issues", &json!({"action": "opened"})).await;
        let asked = || server.asked.lock().unwrap().len();
        world.drain().await.unwrap();
        assert_eq!(asked(), if held { 1 } else { 2 }, "{status} {when}: what comes behind it is held back as well");
        if held {
            let note = "http:board has its rate of requests, or asked to be left alone";
            assert_eq!(operation(&world, "d-2").await["note"], note);
            world.minutes(1).await.unwrap();
            assert_eq!(asked(), 1, "{status}");
        }
        world.minutes(2).await.unwrap();
        assert_eq!((asked(), server.effects.lock().unwrap().len()), (3, 2), "{status} {when}");
        for id in ["d-1", "d-2"] {
            assert_eq!(operation(&world, id).await["state"], "done", "{id}");
        }
        serving.abort();
    }
}

/// Refused connections are known to have done nothing: state submitted, not uncertain.
#[tokio::test]
async fn a_refused_connection_did_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let world = world_at(&address.to_string(), Act::Answer).await;
    send(&world, "d-1", "issues", &json!({"action": "opened"})).await;
    world.drain().await.unwrap();
    let shown = operation(&world, "d-1").await;
    assert_eq!((&shown["state"], &shown["note"]), (&json!("retrying"), &json!("http:board: no connection")));
    assert_eq!(shown["intent"]["state"], "submitted");
    let server = Arc::new(Server::default());
    let serving = tokio::spawn(server.clone().serve(TcpListener::bind(address).await.unwrap()));
    world.minutes(2).await.unwrap();
    assert_eq!(state(&world, "d-1").await, "done already-done");
    serving.abort();
}
