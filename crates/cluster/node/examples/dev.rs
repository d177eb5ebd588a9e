//! A node against whatever cluster the usual kubeconfig names, for development.
//! `cargo run -p boathook-node --example dev -- NAME DIR`; then, a line each on its stdin,
//! (`LOAD_IMAGE` names an image archive to load first)
//! `exec NAMESPACE POD CONTAINER COMMAND...` and `logs NAMESPACE POD CONTAINER [previous]`.

use boathook_node::kubelet::{Node, NodeConfig};
use boathook_node::runtime::log::LogOptions;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::io::AsyncReadExt;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    boathook_node::container_init::run_if_asked();
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, dir] = arguments.as_slice() else { return Err("usage: dev NAME DIR".into()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (send, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            send.blocking_send(line).ok();
        }
    });
    runtime.block_on(async {
        let client = Client::try_default().await?;
        let dir = std::path::PathBuf::from(dir);
        let (address, persistent_volumes) = ("127.0.0.1".to_owned(), dir.join("volumes"));
        let config = NodeConfig { name: name.clone(), address, dir, persistent_volumes };
        if let Ok(archive) = std::env::var("LOAD_IMAGE") {
            println!("{:?}", config.images().load(archive.as_ref())?);
        }
        let node = Node::start(client.clone(), config).await?;
        println!("ready");
        loop {
            tokio::select! {
                stopped = tokio::signal::ctrl_c() => break stopped?,
                Some(line) = lines.recv() => {
                    if let Err(error) = ask(&client, &node, &line).await {
                        println!("error: {error}");
                    }
                }
            }
        }
        node.shut_down().await;
        Ok(())
    })
}

async fn ask(client: &Client, node: &Node, line: &str) -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [verb, namespace, pod, container, rest @ ..] = words.as_slice() else { return Err("too few words".into()) };
    let pod = Api::<Pod>::namespaced(client.clone(), namespace).get(pod).await?;
    if *verb == "logs" {
        let lines = node.sessions().logs(&pod, container, rest == ["previous"], LogOptions::default());
        let mut lines = lines.map_err(|error| error.message)?;
        while let Some(bytes) = lines.try_next().await? {
            print!("{}", String::from_utf8_lossy(&bytes));
        }
        return Ok(());
    }
    let command = rest.iter().map(|&word| word.to_owned()).collect();
    let sessions = node.sessions();
    let mut session = sessions.exec(&pod, container, command, false, false).await.map_err(|error| error.message)?;
    let mut output = String::new();
    session.stdout.read_to_string(&mut output).await?;
    println!("{output}exit code {}", session.exit.await);
    Ok(())
}
