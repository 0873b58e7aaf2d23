package proc

import (
	"fmt"
	"path/filepath"
)

// CgroupRecords is the folder, beside a role's segment, of the links from
// processes to the cgroups that were made for them.
const CgroupRecords = "cgroups"

// CgroupRecord is the link that says in which cgroup a process was born. It is
// made before the process executes anything and removed after the cgroup, so
// that whoever must make sure of the end of a process tree finds it when the
// process itself can be asked no more. dir is the folder of the segment.
func CgroupRecord(dir string, id Identity) string {
	return filepath.Join(dir, CgroupRecords, fmt.Sprintf("%d.%d", id.PID, id.Start))
}
