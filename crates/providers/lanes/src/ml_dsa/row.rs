// SPDX-License-Identifier: Apache-2.0
//! What a register does, or two, with sixteen coefficients.

/// Coefficients in memory.
pub(super) type Numbers = [i32; 16];

/// Sixteen coefficients. Kernels are written once over it; each is compiled with the instructions that its rows take and runs where they
/// exist, which is why the rows may call intrinsics.
pub(super) trait Row: Copy {
    /// As many products of 64 bits.
    type Wide: Copy;
    fn load(from: &Numbers) -> Self;
    fn store(self, to: &mut Numbers);
    fn splat(number: i32) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// The lower half of the products.
    fn times(self, other: Self) -> Self;
    /// Of signed numbers, by `COUNT` bits.
    fn shift_right<const COUNT: u32>(self) -> Self;
    fn wide(self, other: Self) -> Self::Wide;
    fn wide_sum(one: Self::Wide, other: Self::Wide) -> Self::Wide;
    /// The upper half of products.
    fn high(wide: Self::Wide) -> Self;
    /// Products over 2^32 modulo q, between −q and q, of less than 2^31 · q (Montgomery).
    fn reduced(wide: Self::Wide) -> Self;
    /// For `distance` 1, 2, 4 or 8: the numbers of both whose places do not have that bit, those of the second in the gaps between those of
    /// the first; then those that do.
    fn weave(one: Self, other: Self, distance: usize) -> (Self, Self);
    /// Whether any number is not zero.
    fn any(self) -> bool {
        let mut numbers = [0; 16];
        self.store(&mut numbers);
        numbers.iter().fold(0, |all, number| all | number) != 0
    }
}
