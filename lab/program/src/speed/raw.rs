// SPDX-License-Identifier: Apache-2.0
//! The raw library: AWS-LC's C functions with a prepared key, a reused context and a fresh IV.

use super::cell::{Cell, Work};
use super::subject::{Loop, MESSAGE, Nonce, Operation, Subject, expect};
use crate::buffer::Buffer;
use crate::{Failure, Result};
use metaslot_bare::{self as bench, Ctr, EC_SIGNATURE, Ec, Ed25519, Gcm, Rsa};

/// The keys, made once and shared by every thread.
#[derive(Debug)]
pub(crate) struct Raw {
    rsa: Rsa,
    ec: Ec,
    ed: Ed25519,
    aes: [u8; 32],
}

impl Raw {
    /// Makes the keys.
    ///
    /// # Errors
    /// Entropy ran out.
    pub(crate) fn new() -> Result<Self> {
        let mut aes = [0; 32];
        bench::random(&mut aes)?;
        Ok(Self { rsa: Rsa::generate(2048)?, ec: Ec::generate()?, ed: Ed25519::generate(), aes })
    }

    fn sign<'a>(&'a self, work: Work) -> Box<dyn Operation + 'a> {
        match work {
            Work::RsaSign => Loop::boxed(
                [0; 256],
                |out| Ok(self.rsa.sign(&MESSAGE, out).map(drop)?),
                |out| Ok(self.rsa.verify(&MESSAGE, out)?),
            ),
            Work::EcSign => Loop::boxed(
                ([0; EC_SIGNATURE], 0),
                |(out, used)| {
                    *used = self.ec.sign(&MESSAGE, out)?;
                    Ok(())
                },
                |(out, used)| Ok(self.ec.verify(&MESSAGE, &out[..*used])?),
            ),
            _ => Loop::boxed(
                [0; 64],
                |out| Ok(self.ed.sign(&MESSAGE, out)?),
                |out| Ok(self.ed.verify(&MESSAGE, out)?),
            ),
        }
    }

    fn verify<'a>(&'a self, work: Work) -> Result<Box<dyn Operation + 'a>> {
        Ok(match work {
            Work::RsaVerify => {
                let mut signature = [0; 256];
                self.rsa.sign(&MESSAGE, &mut signature)?;
                let verify =
                    |signature: &mut [u8; 256]| Ok(self.rsa.verify(&MESSAGE, signature)?);
                Loop::boxed(signature, verify, |signature| {
                    signature[9] ^= 1;
                    let refused = self.rsa.verify(&MESSAGE, signature).is_err();
                    signature[9] ^= 1;
                    expect(refused, "a changed RSA signature verifies")
                })
            }
            Work::EcVerify => {
                let mut signature = [0; EC_SIGNATURE];
                let used = self.ec.sign(&MESSAGE, &mut signature)?;
                let signature = signature[..used].to_vec();
                Loop::boxed(
                    signature,
                    |signature| Ok(self.ec.verify(&MESSAGE, signature)?),
                    |signature| {
                        let refused = self.ec.verify(&[0; 32], signature).is_err();
                        expect(refused, "an ECDSA signature verifies for another digest")
                    },
                )
            }
            _ => {
                let mut signature = [0; 64];
                self.ed.sign(&MESSAGE, &mut signature)?;
                Loop::boxed(
                    signature,
                    |signature| Ok(self.ed.verify(&MESSAGE, signature)?),
                    |signature| {
                        let refused = self.ed.verify(b"another", signature).is_err();
                        expect(refused, "an Ed25519 signature verifies for another message")
                    },
                )
            }
        })
    }

    fn gcm<'a>(&self, size: usize) -> Result<Box<dyn Operation + 'a>> {
        struct State {
            gcm: Gcm,
            nonce: Nonce,
            last: [u8; 12],
            data: Buffer,
            out: Buffer,
        }
        let state = State {
            gcm: Gcm::new(&self.aes)?,
            nonce: Nonce::new(),
            last: [0; 12],
            data: Buffer::input(size),
            out: Buffer::output(size + 16),
        };
        Ok(Loop::boxed(
            state,
            |state| {
                state.last = state.nonce.next();
                state.gcm.seal(&state.last, &state.data, &mut state.out)?;
                Ok(())
            },
            |state| {
                let mut opened = vec![0; state.out.len()];
                let used = state.gcm.open(&state.last, &state.out, &mut opened)?;
                expect(opened[..used] == *state.data, "AES-GCM opens to other bytes")
            },
        ))
    }

    fn ctr<'a>(&self, size: usize) -> Result<Box<dyn Operation + 'a>> {
        let ctr = Ctr::new(&self.aes)?;
        let state = (ctr, Nonce::new(), [0; 16], Buffer::input(size), Buffer::output(size));
        Ok(Loop::boxed(
            state,
            |(ctr, nonce, last, data, out)| {
                *last = nonce.next();
                ctr.apply(last, data, out);
                Ok(())
            },
            |(ctr, _, last, data, out)| {
                let mut back = vec![0; out.len()];
                ctr.apply(last, out, &mut back);
                expect(back == **data, "AES-CTR decrypts to other bytes")
            },
        ))
    }

    fn generate<'a>(&self, work: Work) -> Result<Box<dyn Operation + 'a>> {
        Ok(match work {
            Work::GenerateAes => Loop::boxed(
                [0; 32],
                |key| Ok(bench::random(key)?),
                |key| expect(*key != [0; 32], "a key of zeros"),
            ),
            Work::GenerateEc => Loop::boxed(
                Ec::generate()?,
                |key| {
                    *key = Ec::generate()?;
                    Ok(())
                },
                |key| {
                    let mut out = [0; EC_SIGNATURE];
                    let used = key.sign(&MESSAGE, &mut out)?;
                    Ok(key.verify(&MESSAGE, &out[..used])?)
                },
            ),
            _ => Loop::boxed(
                Rsa::generate(2048)?,
                |key| {
                    *key = Rsa::generate(2048)?;
                    Ok(())
                },
                |key| {
                    let mut out = [0; 256];
                    key.sign(&MESSAGE, &mut out)?;
                    Ok(key.verify(&MESSAGE, &out)?)
                },
            ),
        })
    }
}

impl Subject for Raw {
    fn operation<'a>(&'a self, cell: &Cell) -> Result<Box<dyn Operation + 'a>> {
        match cell.work {
            Work::RsaSign | Work::EcSign | Work::EdSign => Ok(self.sign(cell.work)),
            Work::RsaVerify | Work::EcVerify | Work::EdVerify => self.verify(cell.work),
            Work::GcmSeal => self.gcm(cell.size),
            Work::Ctr => self.ctr(cell.size),
            Work::Sha256 => Ok(Loop::boxed(
                (Buffer::input(cell.size), [0; 32]),
                |(data, out)| {
                    bench::sha256(data, out);
                    Ok(())
                },
                |(_, out)| expect(*out != [0; 32], "a digest of zeros"),
            )),
            Work::Random => Ok(Loop::boxed(
                Buffer::output(cell.size),
                |bytes| Ok(bench::random(bytes)?),
                |bytes| expect(bytes.iter().any(|byte| *byte != 0), "random bytes are zero"),
            )),
            Work::GenerateAes | Work::GenerateEc | Work::GenerateRsa => self.generate(cell.work),
            Work::Session => Err(Failure::new("a library has no sessions")),
        }
    }
}
