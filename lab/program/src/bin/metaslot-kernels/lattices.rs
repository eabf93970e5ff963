// SPDX-License-Identifier: Apache-2.0
//! ML-DSA-65, of which one request fills all lanes.

use crate::row::{Result, Work, array, each, failed, same};
use metaslot_awslc_wrapper::ml_dsa::{MU_LENGTH, MlDsaKey, SEED_LENGTH, Set};
use metaslot_awslc_wrapper::seeded::SeededKey;
use metaslot_lab::kernels::thread_cpu;
use metaslot_lanes::ml_dsa::{PrivateKey, RANDOM_LENGTH};

/// Messages that are signed in turn: how many attempts a signature takes depends on its message. Both sign the same ones without
/// randomness, so that they make the same attempts, and the same are counted, step by step, which takes long.
pub(crate) const MESSAGES: usize = 8;
/// Messages that they are chosen from.
const MANY: usize = 1024;
/// From one turn to the next.
const STRIDE: usize = 3;

const SET: Set = Set::Ml65;

struct Sign {
    library: MlDsaKey,
    key: PrivateKey,
    messages: Vec<[u8; MU_LENGTH]>,
    /// Whose turn it is: by the library, and by the kernel.
    next: [usize; 2],
    out: Vec<Vec<u8>>,
    alone: Vec<u8>,
}

pub(crate) fn sign() -> Result<Box<dyn Work>> {
    let library = MlDsaKey::of_seed(SET, &array::<SEED_LENGTH>()?).map_err(failed("a key"))?;
    let expanded = library.expanded().map_err(failed("a key"))?;
    let empty = vec![0; SET.signature_length()];
    let key = PrivateKey::new(SET, expanded.expose()).map_err(failed("a key for the kernel"))?;
    Ok(Box::new(Sign {
        library,
        messages: messages(&key)?,
        key,
        next: [0; 2],
        out: vec![empty.clone(); MESSAGES],
        alone: empty,
    }))
}

/// Of many messages some that stand for all: by the time that their signatures take, the middle one of each eighth.
fn messages(key: &PrivateKey) -> Result<Vec<[u8; MU_LENGTH]>> {
    let mut all = each(MANY, |_| array())?;
    let mut out = vec![0; SET.signature_length()];
    all.sort_by_cached_key(|message| {
        let start = thread_cpu();
        let done = key.sign(message, &[0; RANDOM_LENGTH], &mut out);
        assert!(done.is_ok(), "the kernel signs");
        thread_cpu() - start
    });
    Ok(all.chunks(MANY / MESSAGES).map(|part| part[part.len() / 2]).collect())
}

impl Sign {
    fn by_library(&mut self, at: usize) {
        let done = self.library.sign_deterministically(&self.messages[at], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC signs");
    }

    fn by_kernel(&mut self, at: usize) {
        let done = self.key.sign(&self.messages[at], &[0; RANDOM_LENGTH], &mut self.out[at]);
        assert!(done.is_ok(), "the kernel signs");
    }

    fn turn(&mut self, of: usize) -> usize {
        self.next[of] = (self.next[of] + STRIDE) % MESSAGES;
        self.next[of]
    }
}

impl Work for Sign {
    fn raw(&mut self) {
        let at = self.turn(0);
        self.by_library(at);
    }

    fn batch(&mut self, _filled: usize) {
        let at = self.turn(1);
        self.by_kernel(at);
    }

    fn counted(&mut self, size: usize) {
        (0..size).for_each(|at| self.by_kernel(at));
    }

    fn check(&mut self) -> Result<()> {
        for at in 0..MESSAGES {
            self.by_library(at);
            self.by_kernel(at);
            same(self.alone == self.out[at], "an ML-DSA signature")?;
        }
        Ok(())
    }
}
