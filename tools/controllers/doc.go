// Package controllers has no code: its tests run electors of client-go and a manager of controller-runtime under elections of a real sidecar.
// With the tag kube they also force leaders from office, beside leaders by client-go's own Lease, and count whose writes come too late in
// the order of a real API server. Module clients/go/k8s is without them, so that who imports that gets nothing of the sidecar's, nor
// controller-runtime.
package controllers
