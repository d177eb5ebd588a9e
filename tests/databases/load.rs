//! Writers that commit all the time, and note what was committed; and whether a copy has it.
//!
//! A transaction adds an entry, changes an older one and counts both in another table. Each entry has a digest of itself:
//! so a transaction of which a part is missing shows, and so does an entry that was copied in the middle of a write. The
//! statements are the same for every database.

use anyhow::{Context, Result, ensure};
use boathook_tests::{Ctx, DEADLINE, exec::exec, poll::Look};

use crate::database::{Database, shell};

/// They write at the same time.
pub(crate) const WRITERS: [&str; 2] = ["1", "2"];

const TABLES: &str = "\
CREATE TABLE entries (writer INT, n INT, body TEXT, digest CHAR(32), PRIMARY KEY (writer, n));
CREATE TABLE totals (writer INT PRIMARY KEY, n INT);
INSERT INTO totals VALUES (1, 0), (2, 0);
";

/// Its arguments are a writer and the client: an endless line of transactions, the number of each when it is committed.
const WRITER: &str = r#"
n=0
while n=$((n + 1)); do
  echo "START TRANSACTION;
    INSERT INTO entries SELECT $1, $n, x.body, MD5(x.body) FROM (SELECT REPEAT(MD5('$1 $n'), 100) AS body) x;
    UPDATE entries SET digest = MD5(CONCAT(body, $n)), body = CONCAT(body, $n) WHERE writer = $1 AND n = $((n / 2));
    UPDATE totals SET n = $n WHERE writer = $1;
    COMMIT; SELECT $n;"
done | sh -c "$2" >/tmp/noted-$1
"#;

/// Of each writer: what it has counted, its entries, the last of them, and how many of them are whole.
const COUNT: &str = "\
SELECT CONCAT_WS(' ', t.n, COUNT(*), MAX(e.n), SUM(CASE WHEN MD5(e.body) = e.digest THEN 1 ELSE 0 END))
FROM totals t JOIN entries e ON e.writer = t.writer GROUP BY t.writer, t.n ORDER BY t.writer;
";

/// The last transaction that each writer knows to be committed.
pub(crate) type Noted = Vec<u64>;

/// Starts the writers, and waits until each has committed something. They go on until their pod ends.
pub(crate) async fn begin(ctx: &Ctx, database: &Database) -> Result<()> {
    database.ask(ctx, database.name, TABLES).await?;
    let detached = r#"setsid sh -c "$1" sh "$2" "$3" </dev/null >/dev/null 2>/tmp/failed-$2 &"#;
    for writer in WRITERS {
        let command = ["sh", "-c", detached, "sh", WRITER, writer, database.client];
        exec(command).in_pod(ctx, database.name).await?.success()?;
    }
    goes_on(ctx, database).await
}

pub(crate) async fn noted(ctx: &Ctx, database: &Database) -> Result<Noted> {
    let mut noted = Noted::new();
    for writer in WRITERS {
        // The last line may be half written.
        let last = format!("touch /tmp/noted-{writer}; sed -n '$!h; ${{x; p}}' /tmp/noted-{writer}");
        let last = shell(ctx, database.name, &last).await?;
        noted.push(if last.trim().is_empty() { 0 } else { last.trim().parse().context("no number was noted")? });
    }
    Ok(noted)
}

/// Waits until every writer has committed more than it has now.
pub(crate) async fn goes_on(ctx: &Ctx, database: &Database) -> Result<()> {
    let since = noted(ctx, database).await?;
    ctx.poll_until(DEADLINE, &format!("the writers of {} go on", database.name), async || {
        let now = noted(ctx, database).await?;
        if now.iter().zip(&since).all(|(now, since)| now > since) {
            return Ok(Look::Done(()));
        }
        let failed = shell(ctx, database.name, "cat /tmp/failed-*").await?;
        Ok(Look::NotYet(format!("they had committed {since:?}, and have {now:?} now\n{failed}")))
    })
    .await
}

/// The copy has all that was noted before its snapshot was begun, nothing that came after its end, and nothing half.
pub(crate) async fn is_whole(ctx: &Ctx, database: &Database, copy: &str, before: &Noted, after: &Noted) -> Result<()> {
    let counted = database.ask(ctx, copy, COUNT).await?;
    let lines: Vec<_> = counted.lines().collect();
    ensure!(lines.len() == WRITERS.len(), "the copy has not all writers: {counted}");
    for (line, (before, after)) in lines.into_iter().zip(before.iter().zip(after)) {
        let numbers: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        let numbers = numbers.with_context(|| format!("it counted `{line}`"))?;
        let [total, entries, last, whole] = numbers[..] else { panic!("it counted `{line}`") };
        ensure!(entries == total && last == total && whole == total, "a transaction is there by half: {line}");
        // What is committed is noted a moment later, and the note before the last is what is read.
        ensure!((*before..=after + 2).contains(&total), "{total} is in the copy, of {before} to {after}");
    }
    Ok(())
}
