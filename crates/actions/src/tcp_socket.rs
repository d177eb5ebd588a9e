//! TCP connect: an open port is success. From wherever the executor runs.

use boathook_api::{TcpSocketAction, pod_notification::ErrorType};
use tokio::net::TcpStream;

use crate::{
    Failure,
    instance::Instance,
    outcome::Attempt,
    until::{Stop, Until},
};

pub(crate) async fn connect(action: &TcpSocketAction, instance: &Instance, until: &Until) -> Attempt {
    let (host, port) = match place(action, instance) {
        Ok(place) => place,
        Err(failure) => return failure.into(),
    };
    match until.run(open(host, port)).await {
        Ok(Ok(_)) => Attempt::succeeded(),
        Ok(Err(message)) => Attempt::failed(ErrorType::HandlerFailed, message),
        Err(Stop::TimeOver) => Attempt::timed_out(&format!("the connection to {host} port {port}"), until),
        Err(Stop::Cancelled) => Attempt::revoked(),
    }
}

fn place<'a>(action: &'a TcpSocketAction, instance: &'a Instance) -> Result<(&'a str, u16), Failure> {
    Ok((instance.host(action.host.as_deref())?, instance.port(&action.port)?))
}

pub(crate) async fn open(host: &str, port: u16) -> Result<TcpStream, String> {
    let connected = TcpStream::connect((host, port)).await;
    connected.map_err(|error| format!("failed to connect to {host} port {port}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Cancel, Outcome};

    #[tokio::test]
    async fn an_open_port_is_success_and_a_closed_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = IntOrString::Int(listener.local_addr().unwrap().port().into());
        let action = TcpSocketAction { port, host: Some("127.0.0.1".to_owned()) };
        let until = Until::within(Duration::from_secs(60), Cancel::new());
        assert_eq!(connect(&action, &Instance::default(), &until).await, Attempt::succeeded());
        drop(listener);
        let closed = connect(&action, &Instance::default(), &until).await;
        assert!(matches!(closed.outcome, Outcome::Failed(failure) if failure.message.contains("refused")));
    }
}
