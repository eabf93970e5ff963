// SPDX-License-Identifier: Apache-2.0
//! Functions with [`Given`] arguments in the standard's lists of functions, whose arguments are pointers.

use super::Given;
use metaslot_ck::{CK_BYTE, CK_NOTIFY, CK_RV, CK_ULONG};
use std::mem;

/// What the C ABI passes exactly as it passes `C`.
///
/// # Safety
/// The type is `C`, or `repr(transparent)` over it.
pub(crate) unsafe trait Passed {
    /// As the standard's headers have it.
    type C;
}

// SAFETY: transparent over a pointer.
unsafe impl<T> Passed for Given<'_, T> {
    type C = *mut T;
}

// SAFETY: the same type.
unsafe impl Passed for CK_BYTE {
    type C = Self;
}

// SAFETY: the same type.
unsafe impl Passed for CK_ULONG {
    type C = Self;
}

// SAFETY: the same type.
unsafe impl Passed for CK_NOTIFY {
    type C = Self;
}

/// Functions of ours as the standard's lists have them, by the number of their arguments: a caller from there passes
/// plain pointers and promises what [`Given`] says, so it is unsafe. That the arguments are those of the standard's
/// headers is for the compiler to compare.
macro_rules! listed {
    ($($name:ident($($argument:ident)*);)*) => {
        $(
            pub(crate) const fn $name<$($argument: Passed),*>(
                function: extern "C" fn($($argument),*) -> CK_RV,
            ) -> Option<unsafe extern "C" fn($($argument::C),*) -> CK_RV> {
                // SAFETY: each argument is passed alike (`Passed`), so the two types have the same ABI.
                Some(unsafe {
                    mem::transmute::<
                        extern "C" fn($($argument),*) -> CK_RV,
                        unsafe extern "C" fn($($argument::C),*) -> CK_RV,
                    >(function)
                })
            }
        )*
    };
}

listed! {
    listed_1(A);
    listed_2(A B);
    listed_3(A B C);
    listed_4(A B C D);
    listed_5(A B C D E);
    listed_6(A B C D E F);
    listed_7(A B C D E F G);
    listed_8(A B C D E F G H);
    listed_9(A B C D E F G H I);
    listed_10(A B C D E F G H I J);
}
