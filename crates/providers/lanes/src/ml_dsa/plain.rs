// SPDX-License-Identifier: Apache-2.0
//! Rows of plain numbers, for every processor; on x86-64 they are what others are compared with.

#![expect(clippy::cast_possible_truncation, reason = "halves of products")]

use super::ring::{Q, Q_INVERSE};
use super::row::{Numbers, Row};

/// Numbers, one after the other.
#[derive(Clone, Copy)]
pub(super) struct Plain(Numbers);

fn each<T: Copy + Default>(one: impl Fn(usize) -> T) -> [T; 16] {
    std::array::from_fn(one)
}

impl Row for Plain {
    type Wide = [i64; 16];

    fn load(from: &Numbers) -> Self {
        Self(*from)
    }

    fn store(self, to: &mut Numbers) {
        *to = self.0;
    }

    fn splat(number: i32) -> Self {
        Self([number; 16])
    }

    fn add(self, other: Self) -> Self {
        Self(each(|i| self.0[i].wrapping_add(other.0[i])))
    }

    fn sub(self, other: Self) -> Self {
        Self(each(|i| self.0[i].wrapping_sub(other.0[i])))
    }

    fn and(self, other: Self) -> Self {
        Self(each(|i| self.0[i] & other.0[i]))
    }

    fn or(self, other: Self) -> Self {
        Self(each(|i| self.0[i] | other.0[i]))
    }

    fn times(self, other: Self) -> Self {
        Self(each(|i| self.0[i].wrapping_mul(other.0[i])))
    }

    fn shift_right<const COUNT: u32>(self) -> Self {
        Self(each(|i| self.0[i] >> COUNT))
    }

    fn wide(self, other: Self) -> [i64; 16] {
        each(|i| i64::from(self.0[i]) * i64::from(other.0[i]))
    }

    fn wide_sum(one: [i64; 16], other: [i64; 16]) -> [i64; 16] {
        each(|i| one[i] + other[i])
    }

    fn high(wide: [i64; 16]) -> Self {
        Self(each(|i| (wide[i] >> 32) as i32))
    }

    fn reduced(wide: [i64; 16]) -> Self {
        Self::high(each(|i| {
            let factor = (wide[i] as i32).wrapping_mul(Q_INVERSE);
            wide[i] - i64::from(factor) * i64::from(Q)
        }))
    }

    fn weave(Self(a): Self, Self(b): Self, distance: usize) -> (Self, Self) {
        let low = each(|i| if i & distance == 0 { a[i] } else { b[i - distance] });
        let high = each(|i| if i & distance == 0 { a[i + distance] } else { b[i] });
        (Self(low), Self(high))
    }
}
