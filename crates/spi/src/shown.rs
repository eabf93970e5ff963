// SPDX-License-Identifier: Apache-2.0
//! How what is behind a trait is shown to who debugs: by the trait's name. Were `Debug` asked of who implements it, each of the
//! hundreds of tables of functions in the module would hold code that prints all of it, down to the AWS-LC contexts.

use crate::provider::*;
use crate::store::{Home, Store};
use std::fmt::{Debug, Formatter, Result};

macro_rules! shown {
    ($($name:ident)*) => {$(
        impl Debug for dyn $name + '_ {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

shown! {
    Provider Pending Digest DigestStream Signature SignatureStream Recover Cipher CipherStream
    Generate GeneratePair Wrap Derive Encapsulation Store Home
}
