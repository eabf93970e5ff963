// SPDX-License-Identifier: Apache-2.0
//! What a token costs in PostgreSQL, beside plain statements by `pgbench` over the same rows in the same run. Short by itself;
//! `METASLOT_OBJECTS` has the number of objects that there are, for figures.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{Place, USER, find, insert, private};
use metaslot_postgres::PostgresStore;
use metaslot_spi::store::{Change, Record, Role, Scope, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// What is asked of the store and of the server, each.
const ROUNDS: usize = 50;

/// As a P-256 key pair's private half has it.
fn key(label: &str) -> Record {
    let mut record = private(label);
    record.attributes.resize(400, 7);
    record
}

/// Rows of another token in the same tables, with three entries of the index each.
fn fill(place: &Place, objects: usize) {
    place.sql(&format!(
        "INSERT INTO metaslot.token(name, serial, label, key_id, so_wrap, next_id, row_set)
         SELECT 'other', serial, label, key_id, so_wrap, next_id, row_set FROM metaslot.token;
         INSERT INTO metaslot.object SELECT max(t.id), n, 1, true, true, decode(repeat('07', 428), 'hex'),
                decode(repeat('07', 60), 'hex'), decode(repeat('07', 48), 'hex'), decode(repeat('07', 32), 'hex')
           FROM metaslot.token t, generate_series(1, {objects}) n GROUP BY n;
         INSERT INTO metaslot.lookup SELECT o.token, decode(md5(o.id || ' ' || k), 'hex'), o.id
           FROM metaslot.object o, generate_series(1, 3) k WHERE o.token <> 1;
         ANALYZE metaslot.object; ANALYZE metaslot.lookup; ANALYZE metaslot.token; ANALYZE metaslot.tree"
    ));
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
fn found(place: &Place) -> (Duration, Duration) {
    let store = place.store();
    store.login(Role::User, USER).unwrap();
    let ask = |at: usize| {
        let query = [(metaslot_ck::CKA_LABEL, format!("key {at}").into_bytes())];
        let begun = Instant::now();
        assert_eq!(store.search(&query, Scope::Both, 0, 9).unwrap().len(), 1);
        begun.elapsed()
    };
    ask(0);
    let first = (1..=ROUNDS).map(ask).collect();
    let again = (1..=ROUNDS).map(ask).collect();
    (median(first).0, median(again).0)
}

/// The bare query for a label.
fn queried(place: &Place) -> Duration {
    let value =
        place.sql("SELECT value FROM metaslot.lookup WHERE token = 2 AND object = 77 LIMIT 1");
    let script = format!(
        "SELECT object FROM metaslot.lookup WHERE token = 2 AND value = '{value}' ORDER BY 1 LIMIT 9;\n"
    );
    place.pgbench(&script, 1, 20 * ROUNDS)
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
    place.sync();
    drop(place.token());
    fill(&place, objects);
    place.sql("CREATE SEQUENCE public.next START 1000000000");
    for (stores, threads) in [(1, 1), (1, 8), (1, 64), (4, 4)] {
        compared(&place, stores, threads, all);
    }
    let ((first, again), bare) = (found(&place), queried(&place));
    let ratio = first.as_secs_f64() / bare.as_secs_f64();
    println!(
        "find by label among {objects}: {first:?}, bare query {bare:?}: {ratio:.2}; again {again:?}"
    );
    let (half, most) = seen(&place);
    println!("a change is seen elsewhere after {half:?} (median), {most:?} (99 of 100)");
    println!("a connection takes {:?}", place.connected(ROUNDS));
    assert!(most < Duration::from_secs(5));
}
