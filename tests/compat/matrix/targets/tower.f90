! SPDX-License-Identifier: MIT
! tower: as tower.c, in Fortran.
module shop
  use iso_c_binding
  implicit none
  interface
    function take(n) bind(c, name="malloc")
      import
      type(c_ptr) :: take
      integer(c_size_t), value :: n
    end function
  end interface
  type(c_ptr), volatile :: kept
  integer, volatile :: times
contains
  subroutine leaf(n)
    integer(c_size_t), value :: n
    kept = take(n)
    times = times + 1
  end subroutine
  subroutine each(n)
    integer(c_size_t), value :: n
    call leaf(n)
    times = times + 1
  end subroutine
end module

program tower
  use shop
  implicit none
  integer :: i
  do i = 1, 40
    call each(30_c_size_t)
  end do
  print '(a)', "40 shop::leaf shop::each"
end program
