// SPDX-License-Identifier: Apache-2.0
//! Table: the groups of RFC 3526 and RFC 7919 of 2048 bits and more, whose primes everybody can make again: of digits of pi and of e.
//! All have the base 2 and a prime p for which (p - 1) / 2 is prime, too.

/// One family: the bytes of its longest prime, which the others share but for their ends.
struct Family {
    digits: [u8; LONGEST],
    /// Length in bytes, and the four bytes before the last eight, all of which are 255.
    ends: [(usize, u32); 5],
}

/// The longest prime, in bytes.
const LONGEST: usize = 1024;

#[rustfmt::skip]
static FAMILIES: [Family; 2] = [
    Family { ends: [(256, 0x8aac_aa68), (384, 0xa93a_d2ca), (512, 0x3406_3199), (768, 0x6dcc_4024), (1024, 0x98ed_d3df)], digits: digits(b"\
    ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e34\
    04ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6\
    f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf0598da48361c55d39a6916\
    3fa8fd24cf5f83655d23dca3ad961c62f356208552bb9ed529077096966d670c354e4abc9804f1746c08ca18217c\
    32905e462e36ce3be39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea95\
    6ae515d2261898fa051015728e5a8aaac42dad33170d04507a33a85521abdf1cba64ecfb850458dbef0a8aea7157\
    5d060c7db3970f85a6e1e4c7abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864d876\
    02733ec86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e208e24fa074e5ab3143db5bfce0fd108e\
    4b82d120a92108011a723c12a787e6d788719a10bdba5b2699c327186af4e23c1a946834b6150bda2583e9ca2ad4\
    4ce8dbbbc2db04de8ef92e8efc141fbecaa6287c59474e6bc05d99b2964fa090c3a2233ba186515be7ed1f612970\
    cee2d7afb81bdd762170481cd0069127d5b05aa993b4ea988d8fddc186ffb7dc90a6c08f4df435c93402849236c3\
    fab4d27c7026c1d4dcb2602646dec9751e763dba37bdf8ff9406ad9e530ee5db382f413001aeb06a53ed9027d831\
    179727b0865a8918da3edbebcf9b14ed44ce6cbaced4bb1bdb7f1447e6cc254b332051512bd7af426fb8f401378c\
    d2bf5983ca01c64b92ecf032ea15d1721d03f482d7ce6e74fef6d55e702f46980c82b5a84031900b1c9e59e7c97f\
    bec7e8f323a97a7e36cc88be0f1d45b7ff585ac54bd407b22b4154aacc8f6d7ebf48e1d814cc5ed20f8037e0a797\
    15eef29be32806a1d58bb7c5da76f550aa3d8a1fbff0eb19ccb1a313d55cda56c9ec2ef29632387fe8d76e3c0468\
    043e8f663f4860ee12bf2d5b0b7474d6e694f91e6dbe115974a3926f12fee5e438777cb6a932df8cd8bec4d073b9\
    31ba3bc832b68d9dd300741fa7bf8afc47ed2576f6936ba424663aab639c5ae4f5683423b4742bf1c978238f16cb\
    e39d652de3fdb8befc848ad922222e04a4037c0713eb57a81a23f0c73473fc646cea306b4bcbc8862f8385ddfa9d\
    4b7fa2c087e879683303ed5bdd3a062b3cf5b3a278a66d2a13f83f44f82ddf310ee074ab6a364597e899a0255dc1\
    64f31cc50846851df9ab48195ded7ea1b1d510bd7ee74d73faf36bc31ecfa268359046f4eb879f924009438b481c\
    6cd7889a002ed5ee382bc9190da6fc026e479558e4475677e9aa9e3050e2765694dfc81f56e880b96e7160c980dd\
    98edd3dfffffffffffffffff\
    ") },
    Family { ends: [(256, 0x6128_5c97), (384, 0x66c6_2e37), (512, 0x5e65_5f6a), (768, 0xd0e4_0e65), (1024, 0xc5c6_424c)], digits: digits(b"\
    ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce249b\
    3ef97d2fe363630c75d8f681b202aec4617ad3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3b557135e\
    7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade73530acca4f483a797abc0ab182b324fb61d108\
    a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d709e02fce1cdf7e2ec\
    c03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc2ec22005c58ef1837d16\
    83b2c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c023861b46fc9d6e6c9077ad91d26\
    91f7f7ee598cb0fac186d91caefe130985139270b4130c93bc437944f4fd4452e2d74dd364f2e21e71f54bff5cae\
    82ab9c9df69ee86d2bc522363a0dabc521979b0deada1dbf9a42d5c4484e0abcd06bfa53ddef3c1b20ee3fd59d7c\
    25e41d2b669e1ef16e6f52c3164df4fb7930e9e4e58857b6ac7d5f42d69f6d187763cf1d5503400487f55ba57e31\
    cc7a7135c886efb4318aed6a1e012d9e6832a907600a918130c46dc778f971ad0038092999a333cb8b7a1a1db93d\
    7140003c2a4ecea9f98d0acc0a8291cdcec97dcf8ec9b55a7f88a46b4db5a851f44182e1c68a007e5e0dd9020bfd\
    64b645036c7a4e677d2c38532a3a23ba4442caf53ea63bb454329b7624c8917bdd64b1c0fd4cb38e8c334c701c3a\
    cdad0657fccfec719b1f5c3e4e46041f388147fb4cfdb477a52471f7a9a96910b855322edb6340d8a00ef0923505\
    11e30abec1fff9e3a26e7fb29f8c183023c3587e38da0077d9b4763e4e4b94b2bbc194c6651e77caf992eeaac023\
    2a281bf6b3a739c1226116820ae8db5847a67cbef9c9091b462d538cd72b03746ae77f5e62292c311562a846505d\
    c82db854338ae49f5235c95b91178ccf2dd5cacef403ec9d1810c6272b045b3b71f9dc6b80d63fdd4a8e9adb1e69\
    62a69526d43161c1a41d570d7938dad4a40e329ccff46aaa36ad004cf600c8381e425a31d951ae64fdb23fcec950\
    9d43687feb69edd1cc5e0b8cc3bdf64b10ef86b63142a3ab8829555b2f747c932665cb2c0f1cc01bd70229388839\
    d2af05e454504ac78b7582822846c0ba35c35f5c59160cc046fd8251541fc68c9c86b022bb7099876a460e7451a8\
    a93109703fee1c217e6c3826e52c51aa691e0e423cfc99e9e31650c1217b624816cdad9a95f9d5b8019488d9c0a0\
    a1fe3075a577e23183f81d4a3f2fa4571efc8ce0ba8a4fe8b6855dfe72b0a66eded2fbabfbe58a30fafabe1c5d71\
    a87e2f741ef8c1fe86fea6bbfde530677f0d97d11d49f7a8443d0822e506a9f4614e011e2a94838ff88cd68c8bb7\
    c5c6424cffffffffffffffff\
    ") },
];

const fn digits(hex: &[u8]) -> [u8; LONGEST] {
    const fn digit(digit: u8) -> u8 {
        if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
    }
    assert!(hex.len() == 2 * LONGEST, "a prime of another length");
    let mut bytes = [0; LONGEST];
    let mut at = 0;
    while at < LONGEST {
        bytes[at] = digit(hex[2 * at]) << 4 | digit(hex[2 * at + 1]);
        at += 1;
    }
    bytes
}

/// What programs call the families, before the number of bits.
const NAMES: [&str; 2] = ["modp_", "ffdhe"];

/// The prime of RFC 7919 of so many bits, big-endian.
#[must_use]
pub fn prime(bits: usize) -> Option<Vec<u8>> {
    FAMILIES[1].prime(bits)
}

impl Family {
    fn prime(&self, bits: usize) -> Option<Vec<u8>> {
        let (length, end) = self.ends.iter().find(|(length, _)| 8 * length == bits)?;
        let shared = self.digits.get(..length.checked_sub(12)?)?;
        Some([shared, &end.to_be_bytes(), &[0xff; 8]].concat())
    }
}

/// The prime of a group by its name: `ffdhe2048` to `ffdhe8192` (RFC 7919), `modp_2048` to `modp_8192` (RFC 3526).
#[must_use]
pub fn named(name: &str) -> Option<Vec<u8>> {
    let named = FAMILIES.iter().zip(NAMES);
    named.filter_map(|(family, start)| family.prime(name.strip_prefix(start)?.parse().ok()?)).next()
}

/// The name of the group that has this prime.
#[must_use]
pub fn name_of(prime: &[u8]) -> Option<String> {
    let mut names = NAMES.iter().map(|start| format!("{start}{}", 8 * prime.len()));
    names.find(|name| named(name).as_deref() == Some(prime))
}

/// Whether a prime, big-endian without leading zeros, is one of these.
#[must_use]
pub fn is_known_prime(prime: &[u8]) -> bool {
    FAMILIES.iter().any(|family| {
        let end = family.ends.iter().find(|(length, _)| *length == prime.len());
        let parts = prime.split_last_chunk::<8>().zip(end);
        parts.and_then(|((rest, ones), (_, end))| {
            let (shared, last) = rest.split_last_chunk::<4>()?;
            let is = *ones == [0xff; 8] && *last == end.to_be_bytes();
            Some(is && family.digits.starts_with(shared))
        }) == Some(true)
    })
}

/// Whether a group is one of these, and its order, where it is said, the half of its prime.
#[must_use]
pub fn is_known_group(prime: &[u8], base: &[u8], order: Option<&[u8]>) -> bool {
    let half = |order: &[u8]| {
        let before = [0].iter().chain(prime);
        let halves = before.zip(prime).map(|(before, byte)| before << 7 | byte >> 1);
        order.iter().copied().eq(halves)
    };
    is_known_prime(prime) && base == [2] && order.is_none_or(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_names() {
        for name in ["ffdhe2048", "modp_2048", "ffdhe8192", "modp_3072"] {
            let prime = named(name).expect("it is there");
            assert!(is_known_prime(&prime));
            assert_eq!(name_of(&prime).as_deref(), Some(name));
        }
        assert!(named("ffdhe1024").is_none() && named("modp_").is_none());
        assert!(name_of(&[7; 256]).is_none());
    }

    #[test]
    fn a_prime_is_had_by_its_length() {
        for bits in [2048, 3072, 4096, 6144, 8192] {
            let prime = prime(bits).unwrap();
            assert!(8 * prime.len() == bits && is_known_prime(&prime), "{bits}");
        }
        assert_eq!([0, 96, 1024, 2049].map(prime), [const { None }; 4]);
    }
}
