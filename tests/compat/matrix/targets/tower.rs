// SPDX-License-Identifier: MIT
// tower: as tower.c, in Rust.
const TIMES: usize = 40;

extern "C" {
    fn malloc(n: usize) -> *mut u8;
}

static mut KEPT: usize = 0;

/// Behind a call, so that the caller stays in the stack.
#[inline(always)]
fn keep(n: usize) {
    unsafe { std::ptr::write_volatile(std::ptr::addr_of_mut!(KEPT), n) };
}

mod shop {
    #[inline(never)]
    pub fn leaf(n: usize) {
        super::keep(unsafe { super::malloc(n) } as usize);
    }

    pub struct Till;
    pub trait Open {
        fn open(&self, n: usize);
    }
    impl Open for Till {
        #[inline(never)]
        fn open(&self, n: usize) {
            leaf(n);
            super::keep(n);
        }
    }

    #[inline(never)]
    pub fn each<T: Open>(t: &T, n: usize) {
        t.open(n);
        super::keep(n);
    }
}

fn main() {
    for i in 0..TIMES {
        shop::each(&shop::Till, 30);
        keep(i);
    }
    println!("{} tower::shop::leaf tower::shop::Till::open tower::shop::each tower::main", TIMES);
}
