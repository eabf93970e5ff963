// SPDX-License-Identifier: Apache-2.0
//! Another module by itself and through modules that pass its token on, in turns: `foreign_speed LABEL PIN OTHER WAY...`.
//! A way is ours (`METASLOT_CONF` has the other module), p11-kit's proxy, or its client.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Access, Module, Session, Template, User};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Pairs of samples of each kind.
const PAIRS: usize = 101;
/// How long one sample takes about.
const SAMPLE: Duration = Duration::from_millis(20);

/// One module with its key.
struct Side {
    session: Session,
    key: ObjectHandle,
}

impl Side {
    fn new(path: &str, label: &str, pin: &str) -> Result<Self> {
        let module = Module::load(path)?;
        module.initialize()?;
        let is_wanted = |slot: &SlotId| module.token_info(*slot).is_ok_and(|t| t.label == label);
        let slot = module.slots(true)?.into_iter().find(is_wanted).context("no such token")?;
        let session = module.open_session(slot, Access::ReadWrite)?;
        match session.login(User::User, pin.as_bytes()) {
            // Logged in by another way, where both are one module.
            Err(failure) if failure.code == Error::USER_ALREADY_LOGGED_IN => {}
            answer => answer?,
        }
        let template =
            Template::new().class(CKO_PRIVATE_KEY).key_type(CKK_RSA).bool(CKA_SIGN, true);
        let key = *session.find(&template)?.first().context("no RSA key")?;
        Ok(Self { session, key })
    }

    fn sign(&self) -> Result<()> {
        let mut signature = [0; 512];
        self.session.sign_init(&CKM_SHA256_RSA_PKCS.into(), self.key)?;
        self.session.sign_into(b"message", &mut signature)?;
        black_box(signature);
        Ok(())
    }

    fn digest(&self) -> Result<()> {
        let mut digest = [0; 32];
        self.session.digest_init(&CKM_SHA256.into())?;
        self.session.digest_into(&[7; 64], &mut digest)?;
        black_box(digest);
        Ok(())
    }
}

/// What was measured of one way.
#[derive(Clone, Default)]
struct Column {
    /// Seconds of one.
    through: Vec<f64>,
    ratios: Vec<f64>,
}

impl Column {
    /// The last sample beside the mean of the two around it.
    fn compare(&mut self, alone: f64) {
        self.ratios.extend(self.through.last().map(|through| alone / through));
    }
}

type Work = fn(&Side) -> Result<()>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, label, pin, other, ways @ ..] = &arguments[..] else {
        anyhow::bail!("usage: foreign_speed LABEL PIN OTHER WAY...");
    };
    // The other begins: it is the host's then, and all use one token in one process.
    let alone = Side::new(other, label, pin)?;
    let ways: Vec<_> = ways
        .iter()
        .map(|way| Side::new(way, label, pin).context(way.clone()))
        .collect::<Result<_>>()?;
    let kinds: [(&str, Work); 2] =
        [("RSA signature", Side::sign), ("SHA-256 of 64 bytes", Side::digest)];
    for (name, work) in kinds {
        let count = calibrated(&alone, work)?;
        let mut columns = vec![Column::default(); ways.len()];
        let mut by_itself = Vec::new();
        for pair in 0..PAIRS {
            let first = sample(&alone, work, count)?;
            // Which of them begins alternates.
            for place in 0..ways.len() {
                let at = (place + pair) % ways.len();
                columns[at].through.push(sample(&ways[at], work, count)?);
            }
            let both = first.midpoint(sample(&alone, work, count)?);
            by_itself.push(both);
            columns.iter_mut().for_each(|column| column.compare(both));
        }
        println!("{name}: {:.2} µs by itself", 1e6 * quantile(&mut by_itself, 2));
        for (way, Column { through, ratios }) in arguments[4..].iter().zip(&mut columns) {
            let speed = [2, 1, 3].map(|quarters| quantile(ratios, quarters));
            println!(
                "    {:.2} µs through {way}; speed {:.3} (quartiles {:.3}, {:.3})",
                1e6 * quantile(through, 2),
                speed[0],
                speed[1],
                speed[2],
            );
        }
    }
    Ok(())
}

/// How often it is done in one sample.
fn calibrated(side: &Side, work: Work) -> Result<u32> {
    let mut count = 1;
    while sample(side, work, count)? * f64::from(count) < SAMPLE.as_secs_f64() {
        count *= 2;
    }
    Ok(count)
}

/// Seconds of one.
fn sample(side: &Side, work: Work, count: u32) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..count {
        work(side)?;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(count))
}

fn quantile(values: &mut [f64], quarters: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * quarters / 4]
}
