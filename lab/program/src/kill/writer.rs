// SPDX-License-Identifier: Apache-2.0
//! One writer: creates keys, and destroys every third of them, until it is killed.

use super::log::{Event, Log};
use crate::token::{Token, aes_template};
use crate::{Failure, Result};
use metaslot_ck::{CKM_AES_KEY_GEN, ObjectHandle};
use metaslot_client::Mechanism;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a token may refuse a right PIN because of attempts that were killed half-way.
const PATIENCE: Duration = Duration::from_secs(60);

/// The label of one writer's object.
pub(crate) fn label(writer: &str, object: u64) -> String {
    format!("{writer}-{object}")
}

/// Makes the token that the writers share.
pub(crate) fn make_token(module: &Path) -> Result<()> {
    Token::make(module).map(drop)
}

/// Writes until the process ends.
pub(crate) fn run(module: &Path, name: &str, path: &Path) -> Result<()> {
    let mut log = Log::append(path)?;
    let token = open(module)?;
    log.say(Event::Ready, 0)?;
    let mut object = 0;
    let mut alive: VecDeque<(u64, ObjectHandle)> = VecDeque::new();
    loop {
        log.say(Event::Creating, object)?;
        let template = aes_template(&label(name, object), true);
        let key = token.session.generate_key(&Mechanism::new(CKM_AES_KEY_GEN), &template)?;
        log.say(Event::Created, object)?;
        alive.push_back((object, key));
        object += 1;
        if object.is_multiple_of(3)
            && let Some((victim, key)) = alive.pop_front()
        {
            log.say(Event::Destroying, victim)?;
            token.session.destroy(key)?;
            log.say(Event::Destroyed, victim)?;
        }
    }
}

/// Opens the token; a refused login is tried again, because killed logins count as failed ones.
pub(crate) fn open(module: &Path) -> Result<Token> {
    let started = Instant::now();
    loop {
        match Token::open(module) {
            Err(failure) if failure.message.contains("C_Login") && started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Err(failure) => return Err(Failure::context(failure, "open the token")),
            token => return token,
        }
    }
}
