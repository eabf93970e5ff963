// SPDX-License-Identifier: Apache-2.0
//! What a token costs in PostgreSQL, beside plain statements by `pgbench` over the same rows in the same run. Short by itself;
//! `METASLOT_OBJECTS` has the number of objects that there are, for figures.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{PASSWORD, Place, USER, find, insert, private};
use metaslot_postgres::{Config, PostgresStore};
use metaslot_spi::store::{Change, Record, Role, Scope, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

/// What is asked of the store and of the server, each.
const ROUNDS: usize = 50;

/// As a P-256 key pair's private half has it.
fn key(label: &str) -> Record {
    let mut record = private(label);
    record.attributes.resize(400, 7);
    record
}

/// So many objects, and another token in the same tables for what plain statements insert.
fn fill(place: &Place, objects: usize) {
    let store = place.user();
    for first in (0..objects).step_by(1000) {
        let some = (first..objects.min(first + 1000)).map(|at| key(&format!("object {at}")));
        store.write(some.map(Change::Insert).collect()).unwrap();
    }
    place.sql(
        "INSERT INTO metaslot.token(name, serial, label, key_id, so_wrap, next_id, row_set)
         SELECT 'other', serial, label, key_id, so_wrap, next_id, row_set FROM metaslot.token;
         ANALYZE metaslot.object; ANALYZE metaslot.lookup; ANALYZE metaslot.token; ANALYZE metaslot.tree",
    );
}

/// How long one of these creates takes, over so many threads at once, which share as many stores as there are.
fn created(place: &Place, stores: usize, threads: usize, each: usize) -> Duration {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let stores = Vec::from_iter((0..stores).map(|_| place.store()));
    stores.iter().for_each(|store| store.login(Role::User, USER).unwrap());
    let make = |store: &PostgresStore| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        insert(store, key(&format!("key {number}")))
    };
    stores.iter().for_each(|store| _ = make(store));
    let begun = Instant::now();
    scope(|scope| {
        for at in 0..threads {
            let store = &stores[at % stores.len()];
            scope.spawn(move || (0..each).for_each(|_| _ = make(store)));
        }
    });
    begun.elapsed() / u32::try_from(threads * each).unwrap()
}

/// The same rows by plain statements, each transaction of an object and its entries, on a connection for each thread.
fn inserted(place: &Place, threads: usize, each: usize) -> Duration {
    let script = "WITH o AS (INSERT INTO metaslot.object SELECT 2, nextval('public.next'), 1, true, true, decode(repeat('07', 428), 'hex'), \
                  decode(repeat('07', 60), 'hex'), decode(repeat('07', 48), 'hex'), decode(repeat('07', 32), 'hex') RETURNING id) \
                  INSERT INTO metaslot.lookup SELECT 2, decode(md5(id || ' ' || k), 'hex'), id FROM o, generate_series(1, 3) k;\n";
    place.pgbench(script, threads, each) / u32::try_from(threads).unwrap()
}

/// Creates beside plain statements, with as many threads as these have connections.
fn compared(place: &Place, stores: usize, threads: usize, all: usize) {
    let each = (all / threads).max(4);
    let (ours, plain) = (created(place, stores, threads, each), inserted(place, threads, each));
    let ratio = plain.as_secs_f64() / ours.as_secs_f64();
    println!(
        "a create by {threads} threads of {stores} daemons: {ours:?}, plain {plain:?}: {ratio:.2} of the rate"
    );
}

fn median(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// Searches by label that were not made before, and again.
fn found(place: &Place, objects: usize, times: usize) -> (Duration, Duration) {
    let store = place.store();
    store.login(Role::User, USER).unwrap();
    let ask = |at: usize| {
        let label = format!("object {}", at * (objects / (times + 1)));
        let query = [(metaslot_ck::CKA_LABEL, label.into_bytes())];
        let begun = Instant::now();
        assert_eq!(store.search(&query, Scope::Both, 0, 9).unwrap().len(), 1);
        begun.elapsed()
    };
    ask(0);
    let first = (1..=times).map(ask).collect();
    let again = (1..=times).map(ask).collect();
    (median(first).0, median(again).0)
}

/// The bare query for a label's number, and for its row, again and again: what the quickest fifth takes in the mean.
fn queried(place: &Place, times: usize) -> [Duration; 2] {
    let value = place.sql(
        "SELECT value FROM metaslot.lookup WHERE token = 1 AND object BETWEEN 77 AND 99
         GROUP BY value HAVING count(*) = 1 LIMIT 1",
    );
    let which = format!("l.token = 1 AND l.value = '{value}' ORDER BY l.object LIMIT 9;\n");
    let number = format!("SELECT object FROM metaslot.lookup l WHERE {which}");
    let rows = "metaslot.lookup l JOIN metaslot.object o ON o.token = l.token AND o.id = l.object";
    let row = format!("SELECT o.* FROM {rows} WHERE {which}");
    let quickest = |query: &str| (0..5).map(|_| place.pgbench(query, 1, times / 5)).min().unwrap();
    [number, row].map(|query| quickest(&query))
}

/// Searches by labels all over that were not made before, and bare queries for such rows in turns with these, both by a socket of
/// this machine: medians. Most of the tree above its leaves is remembered by then.
fn in_turns(place: &Place, objects: usize, times: usize) -> [Duration; 2] {
    let step = (objects / (3 * times + 1)).max(1);
    let value = place.sql(&format!(
        "SELECT DISTINCT ON (object) encode(value, 'hex') FROM metaslot.lookup WHERE token = 1 AND object % {step} = 0
         AND value <> (SELECT value FROM metaslot.lookup WHERE token = 1 AND object BETWEEN 77 AND 99
                       GROUP BY value HAVING count(*) > 1)"
    ));
    let mut values = value.lines().cycle();
    let store =
        PostgresStore::new(Config { address: place.url_here().parse().unwrap(), ..place.config() });
    store.login(Role::User, USER).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let url = place.url_here().replace("&token=test", "");
    let mut here: tokio_postgres::Config = url.parse().unwrap();
    here.password(PASSWORD);
    let (client, connection) = runtime.block_on(here.connect(NoTls)).unwrap();
    runtime.spawn(connection);
    let planned_once = "SET plan_cache_mode = force_generic_plan";
    runtime.block_on(client.batch_execute(planned_once)).unwrap();
    let row = "SELECT o.* FROM metaslot.lookup l JOIN metaslot.object o ON o.token = l.token AND o.id = l.object
               WHERE l.token = 1 AND l.value = $1 ORDER BY l.object LIMIT 9";
    let row = runtime.block_on(client.prepare(row)).unwrap();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for at in 0..3 * times {
        let digits = values.next().unwrap().as_bytes().chunks(2);
        let bytes = digits.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap());
        let value = Vec::from_iter(bytes);
        let begun = Instant::now();
        assert_eq!(runtime.block_on(client.query(&row, &[&value])).unwrap().len(), 1);
        let between = Instant::now();
        let label = format!("object {}", (at * step) % objects);
        let query = [(metaslot_ck::CKA_LABEL, label.into_bytes())];
        let asked = Instant::now();
        assert_eq!(store.search(&query, Scope::Both, 0, 9).unwrap().len(), 1);
        // What comes first has to read nodes that are remembered then.
        if at >= 2 * times {
            bare.push(between - begun);
            ours.push(asked.elapsed());
        }
    }
    [bare, ours].map(|times| median(times).0)
}

/// From the return of a change here until another machine shows it.
fn seen(place: &Place) -> (Duration, Duration) {
    let (here, there) = (place.store(), place.store());
    [&here, &there].iter().for_each(|store| store.login(Role::User, USER).unwrap());
    let times = (0..ROUNDS).map(|at| {
        let label = format!("seen {at}");
        assert!(find(&there, &label).is_empty());
        here.write(vec![Change::Insert(private(&label))]).unwrap();
        let begun = Instant::now();
        while find(&there, &label).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it is not seen");
            sleep(Duration::from_micros(200));
        }
        begun.elapsed()
    });
    median(times.collect())
}

#[test]
fn what_a_token_costs_beside_plain_statements() {
    let Some(mut place) = Place::new("speed") else { return };
    let given = std::env::var("METASLOT_OBJECTS").ok().and_then(|number| number.parse().ok());
    let (objects, all) = given.map_or((1000, ROUNDS), |objects: usize| (objects, 20 * ROUNDS));
    fill(&place, objects);
    place.sync();
    place.sql("CREATE SEQUENCE public.next START 1000000000");
    for (stores, threads) in [(1, 1), (1, 8), (1, 64), (4, 4)] {
        compared(&place, stores, threads, all);
    }
    let ((first, again), [number, row]) = (found(&place, objects, all), queried(&place, all));
    let times = |bare: Duration| first.as_secs_f64() / bare.as_secs_f64();
    println!(
        "find by label among {objects}: {first:?}; again {again:?}; bare query for its number {number:?}: {:.2}, for its row {row:?}: {:.2}",
        times(number),
        times(row)
    );
    place.sql("VACUUM ANALYZE");
    let [bare, ours] = in_turns(&place, objects, all);
    println!(
        "labels all over: {ours:?}, bare query for such rows in turns {bare:?}: {:.2}",
        ours.as_secs_f64() / bare.as_secs_f64()
    );
    let (half, most) = seen(&place);
    println!("a change is seen elsewhere after {half:?} (median), {most:?} (99 of 100)");
    println!("a connection takes {:?}", place.connected(ROUNDS));
    assert!(most < Duration::from_secs(5));
}
