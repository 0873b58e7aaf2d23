package shm

const plainStoresKeepOrder = true
