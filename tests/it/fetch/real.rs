//! The real client over real loopback HTTP.

use std::sync::Mutex;

use runtime::call::HttpsCaller;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Serves these answers, one per connection; the last one again and again. Empty: nothing is ever answered.
async fn serve(listener: TcpListener, answers: Vec<String>, asked: Arc<Mutex<Vec<String>>>) {
    let mut open = Vec::new();
    let mut turn = 0;
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut head = String::new();
        while !head.contains("\r\n\r\n") {
            let mut piece = [0; 1_024];
            match stream.read(&mut piece).await {
                Ok(read) if read > 0 => head += &String::from_utf8_lossy(&piece[..read]),
                _ => break,
            }
        }
        asked.lock().unwrap().push(head);
        let answer = &answers[turn.min(answers.len() - 1)];
        turn += 1;
        match answer.as_str() {
            "" => open.push(stream),
            answer => drop(stream.write_all(answer.as_bytes()).await), // a client that hung up is its own affair
        }
    }
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn what_a_server_on_this_machine_says_is_fetched() {
    let large = "x".repeat(70_000);
    for (first, note) in [
        (String::new(), "http:runs: no answer in time"),
        (http("404 Not Found", "{}"), "http:runs: it has nothing there yet (status 404)"),
        (http("302 Found", ""), "http:runs: status 302"),
        (http("200 OK", &large), "http:runs: the answer broke off, or has more than 65536 bytes"),
        (http("200 OK", "<html>"), ""),
        (http("200 OK", &run().to_string()), ""),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Only who says nothing is to be waited for in vain.
        let timeout = if first.is_empty() { "timeout_ms = 300\n" } else { "" };
        let mut config = config(USAGE, timeout);
        config.addresses.insert("RUNS_URL".to_owned(), format!("http://{}", listener.local_addr().unwrap()));
        config.caller = Arc::new(HttpsCaller::new().unwrap());
        let world = submitted_with(config).await;
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let answers = vec![first.clone(), http("200 OK", &run().to_string())];
        let serving = tokio::spawn(serve(listener, answers, asked.clone()));
        accepted(&world, "msg_1", &without_usage()).await;
        world.drain().await.unwrap();
        if !note.is_empty() {
            assert_eq!(shown(&world, "msg_1", Fetch).await["note"], note);
        }
        world.minutes(4).await.unwrap();
        assert_settled(&world, "j1", "msg_1").await;
        let asked = asked.lock().unwrap().clone();
        assert!(
            asked[0].starts_with("GET /v1/runs/p-j1 HTTP/1.1")
                && asked[0].contains("authorization: Bearer token-canary")
        );
        serving.abort();
    }
}
