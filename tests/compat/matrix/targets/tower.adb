--  SPDX-License-Identifier: MIT
--  tower: as tower.c, in Ada.
with Ada.Text_IO;
with System;

procedure Tower is

   function Malloc (N : Long_Integer) return System.Address
     with Import, Convention => C, External_Name => "malloc";

   Kept  : System.Address with Volatile;
   Count : Integer := 0 with Volatile;

   package Shop is
      procedure Leaf (N : Long_Integer) with No_Inline;
      procedure Each (N : Long_Integer) with No_Inline;
   end Shop;

   package body Shop is
      procedure Leaf (N : Long_Integer) is
      begin
         Kept := Malloc (N);
         Count := Count + 1;
      end Leaf;

      procedure Each (N : Long_Integer) is
      begin
         Leaf (N);
         Count := Count + 1;
      end Each;
   end Shop;

begin
   for I in 1 .. 40 loop
      Shop.Each (30);
   end loop;
   Ada.Text_IO.Put_Line ("40 tower.shop.leaf tower.shop.each tower");
end Tower;
