package start

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const (
	cpuCountMax = 1024
	wordBits    = 64
)

// setAffinity restricts the calling thread, to which the goroutine stays bound, to the listed CPUs.
func setAffinity(cpus string) error {
	var mask [cpuCountMax / wordBits]uint64
	for _, text := range strings.Split(cpus, ",") {
		cpu, err := strconv.ParseUint(text, 10, 32)
		if err != nil || cpu >= cpuCountMax {
			return fmt.Errorf("%q is not a CPU number", text)
		}
		mask[cpu/wordBits] |= 1 << (cpu % wordBits)
	}
	runtime.LockOSThread()
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0,
		unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return errno
	}
	return nil
}
