package cmdexec

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a job object: everything that a process in it starts is in it too. It dies with a killed retry, whose last handle the
// system closes.
type job windows.Handle

// newJob puts a process into a job of its own. What the process started before is not in it.
func newJob(pid int) (job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	j := job(handle)
	if err := j.limit(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE); err != nil {
		j.close()
		return 0, err
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		j.close()
		return 0, err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(handle, process); err != nil {
		j.close()
		return 0, err
	}
	return j, nil
}

func (j job) limit(flags uint32) error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = flags
	_, err := windows.SetInformationJobObject(windows.Handle(j), windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// release lets what is left of the job live on, as a daemon does.
func (j job) release() {
	_ = j.limit(0)
	j.close()
}

func (j job) kill() {
	_ = windows.TerminateJobObject(windows.Handle(j), 1)
}

func (j job) close() {
	_ = windows.CloseHandle(windows.Handle(j))
}
