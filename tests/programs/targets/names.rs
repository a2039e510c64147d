// SPDX-License-Identifier: MIT
// Strings, vectors and maps: each of these functions allocates only through
// the standard library.
use std::collections::HashMap;
use std::fmt;

#[derive(Clone)]
struct Order {
    customer: String,
    items: Vec<String>,
}

impl fmt::Display for Order {
    #[inline(never)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.customer, self.items.join(", "))
    }
}

#[inline(never)]
fn load(n: usize) -> Vec<Order> {
    let mut orders = Vec::new();
    for i in 0..n {
        orders.push(Order {
            customer: format!("customer {}", i),
            items: vec![i.to_string(), "another item".to_string()],
        });
    }
    orders
}

#[inline(never)]
fn index(orders: &[Order]) -> HashMap<String, usize> {
    let mut map = HashMap::new();
    for (i, order) in orders.iter().enumerate() {
        map.insert(order.customer.clone(), i);
    }
    map
}

fn main() {
    let orders = load(1000);
    let copies = orders.clone();
    let texts: usize = copies.iter().map(|o| o.to_string().len()).sum();
    println!("{} {}", index(&orders).len(), texts);
}
