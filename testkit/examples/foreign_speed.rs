// SPDX-License-Identifier: Apache-2.0
//! Another module by itself and through ours, in turns: `foreign_speed OURS OTHER LABEL PIN`. The first names
//! the module that has the other's token with this label as a slot (`METASLOT_CONF`).

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
        session.login(User::User, pin.as_bytes())?;
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

type Work = fn(&Side) -> Result<()>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, ours, other, label, pin] = &arguments[..] else {
        anyhow::bail!("usage: foreign_speed OURS OTHER LABEL PIN");
    };
    // The other begins: it is the host's then, and both use one token in one process.
    let other = Side::new(other, label, pin)?;
    let ours = Side::new(ours, label, pin)?;
    let kinds: [(&str, Work); 2] =
        [("RSA signature", Side::sign), ("SHA-256 of 64 bytes", Side::digest)];
    for (name, work) in kinds {
        let count = calibrated(&other, work)?;
        let mut ratios = Vec::new();
        let (mut alone, mut through) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            // Which of the two begins alternates.
            let (a, b) = if pair % 2 == 0 {
                let a = sample(&other, work, count)?;
                (a, sample(&ours, work, count)?)
            } else {
                let b = sample(&ours, work, count)?;
                (sample(&other, work, count)?, b)
            };
            ratios.push(a / b);
            alone.push(a);
            through.push(b);
        }
        println!(
            "{name}: {:.2} µs alone, {:.2} µs through us; speed {:.3} (quartiles {:.3}, {:.3})",
            1e6 * quantile(&mut alone, 2),
            1e6 * quantile(&mut through, 2),
            quantile(&mut ratios, 2),
            quantile(&mut ratios, 1),
            quantile(&mut ratios, 3),
        );
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
