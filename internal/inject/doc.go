// Package inject adds a sidecar to pods that ask for it, as a mutating admission webhook of Kubernetes.
//
// What it adds is a [Pattern], which the chart renders by the templates that other charts include: there is one source of what a
// sidecar in a pod is, and it is not here. This package knows which containers get a socket, which settings a pod may choose
// by annotation, and what is wrong with those it has chosen.
//
// Pods are maps, changed in a few places and otherwise passed on as they came, so that a field that this package has never
// heard of survives. The types of k8s.io/api and a client of k8s.io/client-go would be most of the sidecar's binary, for two
// objects that are read and written: they are reached by plain requests.
//
// The webhook's certificate is the cluster administrator's, in files, or its own: see [Keeper].
package inject
