//! Writers: each a client of its own that creates one object after the other. What counts is what was acknowledged.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use tokio::task::JoinHandle;

use crate::client::{Connection, Target};
use crate::objects::{CONFIG_MAPS, config_map};

/// Enough to be quick, whatever waits for the disk.
const LOADERS: usize = 32;

/// Writes that are acknowledged within a second, by so many clients at once.
pub(crate) async fn per_second(target: &Target, clients: usize, time: Duration, round: usize) -> Result<f64> {
    // All are connected before the time begins.
    let connections = connect(target, clients).await?;
    let end = Instant::now() + time;
    let write = |(client, mut connection): (usize, Connection)| {
        tokio::spawn(async move {
            let mut acknowledged = 0_u32;
            loop {
                let name = format!("writes-{clients}-{round}-{client}-{acknowledged}");
                connection.create(CONFIG_MAPS, config_map(&name)).await?;
                if Instant::now() > end {
                    return Ok(acknowledged);
                }
                acknowledged += 1;
            }
        })
    };
    let acknowledged: u32 = join(connections.into_iter().enumerate().map(write)).await?.into_iter().sum();
    Ok(f64::from(acknowledged) / time.as_secs_f64())
}

/// Writes so many objects, as fast as it goes.
pub(crate) async fn exactly(target: &Target, objects: usize) -> Result<()> {
    let connections = connect(target, LOADERS).await?;
    let write = |(client, mut connection): (usize, Connection)| {
        tokio::spawn(async move {
            for number in (client..objects).step_by(LOADERS) {
                connection.create(CONFIG_MAPS, config_map(&format!("object-{number}"))).await?;
            }
            Ok(())
        })
    };
    join(connections.into_iter().enumerate().map(write)).await?;
    Ok(())
}

async fn connect(target: &Target, clients: usize) -> Result<Vec<Connection>> {
    try_join_all((0..clients).map(|_| target.connect())).await
}

async fn join<T>(tasks: impl Iterator<Item = JoinHandle<Result<T>>>) -> Result<Vec<T>> {
    let done = try_join_all(tasks).await.context("a client panicked")?;
    done.into_iter().collect()
}
