(* SPDX-License-Identifier: MIT *)
(* tower: as tower.c, in OCaml, whose large arrays are the C library's. *)
let kept = ref None
let count = ref 0

let[@inline never] leaf n =
  kept := Some (Bigarray.Array1.create Bigarray.char Bigarray.c_layout n);
  incr count

let[@inline never] ( |+ ) n m = leaf (n + m); incr count

let[@inline never] take () =
  for _ = 1 to 40 do 3000 |+ 1 done;
  incr count

let () =
  take ();
  print_endline "40 Tower.leaf Tower.|+ Tower.take Tower.entry"
