// SPDX-License-Identifier: Apache-2.0
//! Public keys in the form that others read.

use super::{Family, Key, Kind};
use crate::encoding::{base64, der};
use crate::failure::{Failure, Result};
use crate::keyfile::public_values;
use crate::x509;
use metaslot_ck::*;
use metaslot_client::{Session, Value};

/// `CKA_PUBLIC_KEY_INFO` where the module has it, else made from the key's numbers.
pub(crate) fn public_key(session: &Session, key: &Key, handle: ObjectHandle) -> Result<Vec<u8>> {
    if let Ok(info) = session.attribute(handle, CKA_PUBLIC_KEY_INFO)
        && !info.is_empty()
    {
        return Ok(info);
    }
    let attribute = |number| session.attribute(handle, number);
    let point = || -> Result<Vec<u8>> { Ok(key.kind.point(&attribute(CKA_EC_POINT)?).to_vec()) };
    match key.kind.family {
        Family::Rsa => {
            let modulus = attribute(CKA_MODULUS)?;
            Ok(der::rsa_public_key(&modulus, &attribute(CKA_PUBLIC_EXPONENT)?))
        }
        Family::Ec => {
            let params = attribute(CKA_EC_PARAMS)?;
            Ok(der::ec_public_key(&params, &point()?))
        }
        Family::Edwards | Family::Montgomery => {
            let oid = key.kind.params().unwrap_or_default();
            Ok(der::edwards_public_key(&oid, &point()?))
        }
        _ => match key.kind.set() {
            Some(set) => Ok(set.public_key(&attribute(CKA_VALUE)?)),
            None => Err(Failure::failed(format!("{} keys have no known public form", key.kind))),
        },
    }
}

/// The line of an OpenSSH public key (RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4), with a remark behind it.
pub(crate) fn ssh_line(kind: &Kind, public_key: &[u8], remark: &str) -> Result<String> {
    let wrong = || Failure::failed(format!("the public half of the {kind} key is damaged"));
    let bits = x509::key_bits(public_key).ok_or_else(wrong)?;
    let (name, parts) = match (kind.family, kind.size) {
        (Family::Rsa, _) => {
            let values = public_values(public_key).map_err(|_| wrong())?;
            let number = |attribute| match values.find(attribute) {
                Some(Value::Bytes(bytes)) => Ok(ssh_number(bytes)),
                _ => Err(wrong()),
            };
            let parts = [number(CKA_PUBLIC_EXPONENT)?, number(CKA_MODULUS)?];
            (String::from("ssh-rsa"), parts.concat())
        }
        (Family::Edwards, 32) => (String::from("ssh-ed25519"), ssh_string(bits)),
        (Family::Ec, 32 | 48 | 66) if kind.to_string().starts_with("ec:p") => {
            let curve = kind.to_string().replace("ec:p", "nistp");
            let parts = [ssh_string(curve.as_bytes()), ssh_string(bits)];
            (format!("ecdsa-sha2-{curve}"), parts.concat())
        }
        _ => {
            return Err(Failure::failed(format!("OpenSSH has no {kind} keys"))
                .hint("it has RSA, ec:p256, ec:p384, ec:p521 and Ed25519"));
        }
    };
    let blob = [ssh_string(name.as_bytes()), parts].concat();
    // What begins a line would be another key.
    let remark: String = remark.chars().filter(|character| !character.is_control()).collect();
    Ok(format!("{name} {} {remark}", base64(&blob)).trim_end().to_owned())
}

fn ssh_string(bytes: &[u8]) -> Vec<u8> {
    let [.., a, b, c, d] = bytes.len().to_be_bytes();
    [&[a, b, c, d], bytes].concat()
}

/// A positive number: not one whose first bit is a sign.
fn ssh_number(number: &[u8]) -> Vec<u8> {
    match number.first() {
        Some(0x80..) => ssh_string(&[&[0], number].concat()),
        _ => ssh_string(number),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ED25519_OID;
    use super::*;

    #[test]
    fn a_remark_ends_no_line() {
        let point = [4; 32];
        let der = der::edwards_public_key(ED25519_OID, &point);
        let kind: Kind = "ed25519".parse().unwrap();
        let line = ssh_line(&kind, &der, "me\nssh-rsa AAAA").unwrap();
        assert!(line.ends_with(" messh-rsa AAAA") && !line.contains('\n'), "{line}");
        for kind in ["x25519", "ed448"] {
            assert!(ssh_line(&kind.parse().unwrap(), &der, "").is_err());
        }
        assert_eq!(ssh_number(&[0x80]), [0, 0, 0, 2, 0, 0x80]);
        assert_eq!(ssh_number(&[0x7f]), [0, 0, 0, 1, 0x7f]);
    }
}
