//go:build linux

package filelease

import "golang.org/x/sys/unix"

// networkKinds: file systems whose locks another machine, or another program,
// decides about. By the magic numbers of statfs(2).
var networkKinds = map[int64]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x01021997: "9p",
	0x65735546: "fuse",
	0x00c36400: "ceph",
	0x5346414f: "afs",
	0x73757245: "coda",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x19830326: "beegfs",
	0x786f4256: "vboxsf",
	0xbacbacbc: "vmhgfs",
	0x7c7c6673: "prl_fs",
}

// statfs is replaced in tests.
var statfs = unix.Statfs

func networkFS(dir string) (kind string, network bool, err error) {
	var st unix.Statfs_t
	for {
		if err = statfs(dir, &st); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return "", false, err
	}
	kind, network = networkKinds[int64(uint32(st.Type))]
	return kind, network, nil
}
