// SPDX-License-Identifier: Apache-2.0
//! AES-128, ChaCha20-Poly1305, RC4 and triple DES over 8 KiB.

use crate::row::{Result, Work, array, between, each, failed, message, random, same};
use metaslot_awslc_wrapper::{aead, aes as library, des as library_des, rc4::Rc4};
use metaslot_lab::kernels::Buffer;
use metaslot_lanes::aes::{self, Counter};
use metaslot_lanes::{chacha, des, rc4};

/// Bytes of a message.
const LENGTH: usize = 8192;

/// Room for every lane's result.
fn outputs(lanes: usize) -> Vec<Buffer> {
    (0..lanes).map(|lane| Buffer::output_of(lane, LENGTH)).collect()
}

/// A key for AES as both want it.
struct Key {
    library: library::Keys,
    kernel: aes::Key,
}

impl Key {
    fn new() -> Result<Self> {
        let key = array::<16>()?;
        let library = library::Keys::new(&key).map_err(|_| "an AES key")?;
        Ok(Self { library, kernel: aes::Key::new(&key).ok_or("an AES key")? })
    }
}

struct CbcEncrypt {
    keys: Vec<Key>,
    iv: [u8; 16],
    messages: Vec<Buffer>,
    out: Vec<Buffer>,
    alone: Buffer,
}

pub(crate) fn cbc_encrypt() -> Result<Box<dyn Work>> {
    Ok(Box::new(CbcEncrypt {
        keys: each(aes::LANES, |_| Key::new())?,
        iv: array()?,
        messages: each(aes::LANES, |lane| message(lane, LENGTH))?,
        out: outputs(aes::LANES),
        alone: Buffer::output(LENGTH),
    }))
}

impl CbcEncrypt {
    fn by_library(&mut self, lane: usize) {
        let (mut iv, key) = (self.iv, &self.keys[lane].library);
        key.cbc(library::Way::Encrypt, &mut iv, &self.messages[lane], &mut self.alone);
    }

    fn of(&mut self, filled: usize, length: usize) {
        let mut ivs = [self.iv; aes::LANES];
        let lanes = self.keys.iter().zip(&self.messages).zip(&mut self.out).zip(&mut ivs);
        let mut streams: Vec<_> = lanes
            .take(filled)
            .map(|(((key, input), out), iv)| aes::Stream {
                key: &key.kernel,
                iv,
                data: between(input, out, length),
            })
            .collect();
        aes::cbc_encrypt(&mut streams);
    }
}

impl Work for CbcEncrypt {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        self.of(filled, LENGTH);
    }

    fn counted(&mut self, length: usize) {
        self.of(aes::LANES, length);
    }

    fn check(&mut self) -> Result<()> {
        for lane in 0..aes::LANES {
            self.by_library(lane);
            same(*self.alone == *self.out[lane], "a ciphertext")?;
        }
        Ok(())
    }
}

/// One message: counter mode, or decryption in CBC mode.
struct Single {
    key: Key,
    counter: bool,
    iv: [u8; 16],
    message: Buffer,
    out: Buffer,
    alone: Buffer,
}

pub(crate) fn single<const COUNTER: bool>() -> Result<Box<dyn Work>> {
    let (message, out) = (message(0, LENGTH)?, Buffer::output(LENGTH));
    let alone = Buffer::output(LENGTH);
    Ok(Box::new(Single { key: Key::new()?, counter: COUNTER, iv: array()?, message, out, alone }))
}

impl Work for Single {
    fn raw(&mut self) {
        let Self { key: Key { library: key, .. }, counter, message, alone, .. } = self;
        let mut iv = self.iv;
        if *counter {
            key.ctr(&mut library::Counter::new(iv), message, alone);
        } else {
            key.cbc(library::Way::Decrypt, &mut iv, message, alone);
        }
    }

    fn batch(&mut self, _filled: usize) {
        self.counted(LENGTH);
    }

    fn counted(&mut self, length: usize) {
        let mut iv = self.iv;
        let data = between(&self.message, &mut self.out, length);
        if self.counter {
            self.key.kernel.ctr(&mut Counter::new(iv, 128), data);
        } else {
            self.key.kernel.cbc_decrypt(&mut iv, data);
        }
    }

    fn check(&mut self) -> Result<()> {
        self.raw();
        same(*self.alone == *self.out, "AES")
    }
}

/// One message, sealed.
struct Seal {
    key: [u8; chacha::KEY],
    library: aead::Key,
    nonce: [u8; chacha::NONCE],
    message: Buffer,
    out: Buffer,
    tag: [u8; chacha::TAG],
    alone: Vec<u8>,
}

pub(crate) fn seal() -> Result<Box<dyn Work>> {
    let (message, out) = (message(0, LENGTH)?, Buffer::output(LENGTH));
    let (key, tag, alone) = (array()?, [0; chacha::TAG], vec![0; LENGTH + chacha::TAG]);
    let library = aead::Key::chacha20_poly1305(&key).map_err(failed("a key"))?;
    Ok(Box::new(Seal { key, library, nonce: array()?, message, out, tag, alone }))
}

impl Work for Seal {
    fn raw(&mut self) {
        // A message of this length is always sealed; what came out is checked.
        _ = self.library.seal(&self.nonce, &[], &self.message, &mut self.alone);
    }

    fn batch(&mut self, _filled: usize) {
        self.counted(LENGTH);
    }

    fn counted(&mut self, length: usize) {
        let (text, out) = (&self.message[..length], &mut self.out[..length]);
        self.tag = chacha::seal(&self.key, &self.nonce, &[], text, out);
    }

    fn check(&mut self) -> Result<()> {
        self.raw();
        self.counted(LENGTH);
        let (text, tag) = self.alone.split_at(LENGTH);
        same(*self.out == *text && self.tag == *tag, "ChaCha20-Poly1305")
    }
}

struct StreamCipher {
    library: Rc4,
    states: Vec<rc4::Rc4>,
    seed: Vec<u8>,
    message: Buffer,
    out: Vec<Buffer>,
    alone: Buffer,
}

pub(crate) fn stream_cipher() -> Result<Box<dyn Work>> {
    let seed = random(16)?;
    Ok(Box::new(StreamCipher {
        library: Rc4::new(&seed).map_err(failed("a key"))?,
        states: each(rc4::LANES, |_| rc4::Rc4::new(&seed).ok_or_else(|| "a key".to_owned()))?,
        seed,
        message: message(0, LENGTH)?,
        out: outputs(rc4::LANES),
        alone: Buffer::output(LENGTH),
    }))
}

impl Work for StreamCipher {
    fn raw(&mut self) {
        self.library.apply(&self.message, &mut self.alone);
    }

    fn batch(&mut self, filled: usize) {
        let lanes = self.states.iter_mut().zip(&mut self.out).take(filled);
        let mut streams: Vec<_> = lanes
            .map(|(state, out)| rc4::Stream { state, data: between(&self.message, out, LENGTH) })
            .collect();
        rc4::apply(&mut streams);
    }

    /// Both go on where they are, so the comparison is of two that begin anew.
    fn check(&mut self) -> Result<()> {
        self.library = Rc4::new(&self.seed).map_err(failed("a key"))?;
        let anew = || rc4::Rc4::new(&self.seed).ok_or_else(|| "a key".to_owned());
        self.states = each(rc4::LANES, |_| anew())?;
        self.raw();
        self.batch(rc4::LANES);
        same(self.out.iter().all(|out| **out == *self.alone), "a key stream")
    }
}

struct TripleDesEncrypt {
    library: library_des::Keys,
    keys: Vec<des::Key>,
    room: des::Lanes,
    iv: [u8; 8],
    message: Buffer,
    out: Vec<Buffer>,
    alone: Buffer,
}

pub(crate) fn triple_des() -> Result<Box<dyn Work>> {
    let seeds = each(des::LANES, |_| array::<24>())?;
    let key = |lane: usize| des::Key::new(&seeds[lane]).ok_or_else(|| "a key".to_owned());
    Ok(Box::new(TripleDesEncrypt {
        library: library_des::Keys::new(&seeds[0]).map_err(failed("a key"))?,
        keys: each(des::LANES, key)?,
        room: des::Lanes::new(),
        iv: array()?,
        message: message(0, LENGTH)?,
        out: outputs(des::LANES),
        alone: Buffer::output(LENGTH),
    }))
}

impl TripleDesEncrypt {
    fn of(&mut self, filled: usize, length: usize) {
        let mut ivs = vec![self.iv; des::LANES];
        let lanes = self.keys.iter().zip(&mut self.out).zip(&mut ivs).take(filled);
        let mut streams: Vec<_> = lanes
            .map(|((key, out), iv)| des::Stream {
                key,
                iv,
                data: between(&self.message, out, length),
            })
            .collect();
        self.room.cbc_encrypt(&mut streams);
    }
}

impl Work for TripleDesEncrypt {
    fn raw(&mut self) {
        let mut iv = self.iv;
        self.library.cbc(library::Way::Encrypt, &mut iv, &self.message, &mut self.alone);
    }

    fn batch(&mut self, filled: usize) {
        self.of(filled, LENGTH);
    }

    fn counted(&mut self, length: usize) {
        self.of(des::LANES, length);
    }

    /// The library's key is the first lane's; the other lanes are compared with that lane alone.
    fn check(&mut self) -> Result<()> {
        self.raw();
        same(*self.alone == *self.out[0], "a ciphertext")?;
        for lane in [1, des::LANES / 2, des::LANES - 1] {
            let mut iv = self.iv;
            let mut back = vec![0; LENGTH];
            self.keys[lane].cbc_decrypt(&mut iv, between(&self.out[lane], &mut back, LENGTH));
            same(*back == *self.message, "a ciphertext")?;
        }
        Ok(())
    }
}
