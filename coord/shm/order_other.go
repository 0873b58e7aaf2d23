//go:build !amd64

package shm

const plainStoresKeepOrder = false
