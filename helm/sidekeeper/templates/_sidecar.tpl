{{/*
What a pod with a sidecar consists of. A chart of yours includes these templates, see docs/kubernetes.md; the injector gets
what they render, so that the two ways cannot differ.

`values` are this chart's values: .Values.sidekeeper in a chart that depends on it. `containers` are the names of the pod's
containers that call the sidecar, init containers that follow it among them; each gets a socket of its own.
*/}}

{{/* The sidecar, as an item of spec.initContainers, where it should be the first. Takes (dict "values" … "containers" …). */}}
{{- define "sidekeeper.container" -}}
{{- $values := .values -}}
{{- include "sidekeeper.complete" $values -}}
- name: sidekeeper
  image: {{ include "sidekeeper.image" $values | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy }}
  restartPolicy: Always
  args:
    {{- include "sidekeeper.arguments" . | fromYamlArray | toYaml | nindent 4 }}
  {{- with $values.extraEnv }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.metrics.port }}
  ports:
    - name: sidekeeper
      containerPort: {{ . }}
      protocol: TCP
  {{- end }}
  startupProbe:
    {{- include "sidekeeper.probe" (dict "values" $values "probe" $values.probes.startup) | nindent 4 }}
  livenessProbe:
    {{- include "sidekeeper.probe" (dict "values" $values "probe" $values.probes.liveness) | nindent 4 }}
  readinessProbe:
    {{- include "sidekeeper.probe" (dict "values" $values "probe" $values.probes.readiness "ready" $values.readinessRequiresEnsemble) | nindent 4 }}
  {{- with $values.lifecycle }}
  lifecycle:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    {{- toYaml $values.securityContext | nindent 4 }}
  volumeMounts:
    {{- include "sidekeeper.container.volumeMounts" . | fromYamlArray | toYaml | nindent 4 }}
{{- end -}}

{{/* The command line, as an array: the flags in their order, so that whoever adds one knows where it goes. */}}
{{- define "sidekeeper.arguments" -}}
{{- $values := .values -}}
{{- include "sidekeeper.timeout" $values.settings -}}
{{- $flags := list "--listen=unix:///run/sidekeeper/sidekeeper.sock" -}}
{{- $flags = append $flags (printf "--zookeeper=%s" (include "sidekeeper.servers" $values)) -}}
{{- with $values.zookeeper.auth -}}
{{- if .secret -}}
{{- $flags = append $flags (printf "--zookeeper-auth-file=/etc/sidekeeper/zookeeper-auth/%s" .key) -}}
{{- end -}}
{{- end -}}
{{- with $values.zookeeper.tls -}}
{{- if .secret -}}
{{- $flags = append $flags (printf "--zookeeper-tls-ca=/etc/sidekeeper/zookeeper-tls/%s" .ca) -}}
{{- if .certificate -}}
{{- $flags = append $flags (printf "--zookeeper-tls-cert=/etc/sidekeeper/zookeeper-tls/%s" .certificate) -}}
{{- $flags = append $flags (printf "--zookeeper-tls-key=/etc/sidekeeper/zookeeper-tls/%s" .key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $values.metrics.port -}}
{{- $flags = append $flags (printf "--metrics-listen=:%d" (int .)) -}}
{{- end -}}
{{- range $setting, $value := $values.settings -}}
{{- if and (kindIs "float64" $value) (eq (toString (floor $value)) (toString $value)) -}}
{{- $value = int64 $value -}}
{{- end -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) -}}
{{- $flags = append $flags (printf "--%s=%s" (kebabcase $setting) (toString $value)) -}}
{{- end -}}
{{- end -}}
{{- range $name := .containers -}}
{{- $flags = append $flags (include "sidekeeper.each.argument" (dict "values" $values "container" $name)) -}}
{{- end -}}
{{- toYaml (prepend (sortAlpha $flags) "serve") -}}
{{- end -}}

{{/* Refuses values that lack a group, as those of an older chart do. */}}
{{- define "sidekeeper.complete" -}}
{{- $values := . -}}
{{- $groups := list "image" "zookeeper" "zookeeper.auth" "zookeeper.tls" "settings" "metrics" "probes" "probes.startup" "probes.liveness" "probes.readiness" -}}
{{- range $path := concat $groups (list "injector" "injector.certificates" "injector.certificates.issuer" "networkPolicies" "networkPolicies.injector") -}}
{{- $found := $values -}}
{{- range $name := splitList "." $path -}}
{{- $found = get ($found | default dict) $name -}}
{{- end -}}
{{- if not (kindIs "map" $found) -}}
{{- fail (printf "%s: the values lack it, as those of an older chart do; helm upgrade --reset-then-reuse-values adds it" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuses a session timeout of less than two ticks, as the sidecar does. Takes the settings. */}}
{{- define "sidekeeper.timeout" -}}
{{- $least := mul 2 (include "sidekeeper.milliseconds" (.tickTime | default "2s") | int64) -}}
{{- if and .sessionTimeout (lt (include "sidekeeper.milliseconds" .sessionTimeout | int64) $least) -}}
{{- fail (printf "settings.sessionTimeout is %q: at least two ticks of the ensemble, %dms" .sessionTimeout $least) -}}
{{- end -}}
{{- end -}}

{{/* A duration, such as 1m30s, in milliseconds. */}}
{{- define "sidekeeper.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- range $part := regexFindAll "[0-9.]+(ms|s|m|h)" . -1 -}}
{{- $number := regexFind "[0-9.]+" $part -}}
{{- $sum = addf $sum (mulf ($number | float64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (trimPrefix $number $part))) -}}
{{- end -}}
{{- int64 $sum -}}
{{- end -}}

{{/* The ensemble, which nothing can be done without. */}}
{{- define "sidekeeper.servers" -}}
{{- regexReplaceAll "\\s+" (required "zookeeper.servers: the ensemble's servers are required, as host:port,…" .zookeeper.servers) "" -}}
{{- end -}}

{{- define "sidekeeper.probe" -}}
{{- $kind := .values.probes.kind | default (ternary "httpGet" "exec" (gt (int .values.metrics.port) 0)) -}}
{{- if and (ne $kind "exec") (not .values.metrics.port) -}}
{{- fail (printf "probes.kind is %s: metrics.port must say where sidecars answer, such as 7185" $kind) -}}
{{- end -}}
{{- if eq $kind "httpGet" -}}
httpGet:
  path: {{ if .ready }}/readyz{{ else }}/healthz{{ end }}
  port: sidekeeper
{{- else if eq $kind "grpc" -}}
grpc:
  port: {{ int .values.metrics.port }}
  service: {{ if .ready }}sidekeeper.readiness{{ else }}""{{ end }}
{{- else -}}
exec:
  command:
    - /sidekeeper
    - health
    - --address=unix:///run/sidekeeper/operator.sock
    - --timeout={{ .probe.timeoutSeconds }}s
    {{- if .ready }}
    - --ready
    {{- end }}
{{- end }}
periodSeconds: {{ .probe.periodSeconds }}
timeoutSeconds: {{ if eq $kind "exec" }}{{ add1 .probe.timeoutSeconds }}{{ else }}{{ .probe.timeoutSeconds }}{{ end }}
failureThreshold: {{ .probe.failureThreshold }}
{{- end -}}

{{- define "sidekeeper.container.volumeMounts" -}}
{{- $values := .values -}}
- name: sidekeeper
  mountPath: /run/sidekeeper
{{- if $values.zookeeper.auth.secret }}
- name: sidekeeper-zookeeper-auth
  mountPath: /etc/sidekeeper/zookeeper-auth
  readOnly: true
{{- end }}
{{- if $values.zookeeper.tls.secret }}
- name: sidekeeper-zookeeper-tls
  mountPath: /etc/sidekeeper/zookeeper-tls
  readOnly: true
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- range $name := .containers }}
{{ include "sidekeeper.each.containerVolumeMount" $name }}
{{- end }}
{{- end -}}

{{/* The pod's volumes, as items of spec.volumes. Takes (dict "values" … "containers" …). */}}
{{- define "sidekeeper.volumes" -}}
{{- $values := .values -}}
- name: sidekeeper
  emptyDir:
    medium: Memory
    sizeLimit: 16Mi
{{- with $values.zookeeper.auth }}
{{- if .secret }}
- name: sidekeeper-zookeeper-auth
  secret:
    secretName: {{ .secret }}
    defaultMode: 0444
{{- end }}
{{- end }}
{{- with $values.zookeeper.tls }}
{{- if .secret }}
- name: sidekeeper-zookeeper-tls
  secret:
    secretName: {{ .secret }}
    defaultMode: 0444
{{- end }}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- range $name := .containers }}
{{ include "sidekeeper.each.volume" $name }}
{{- end }}
{{- end -}}

{{/* What a container that calls the sidecar mounts, as items of its volumeMounts. Takes the container's name. */}}
{{- define "sidekeeper.volumeMounts" -}}
- name: sidekeeper-{{ . }}
  mountPath: /run/sidekeeper
  readOnly: true
{{- end -}}

{{/* What a container that calls the sidecar has in its environment, as items of its env. Takes nothing. */}}
{{- define "sidekeeper.env" -}}
- name: SIDEKEEPER_ADDRESS
  value: unix:///run/sidekeeper/sidekeeper.sock
{{- end -}}

{{/* Labels of a pod with a sidecar: monitors and network policies find it by them. Takes nothing. */}}
{{- define "sidekeeper.labels" -}}
sidekeeper.io/sidecar: "true"
{{- end -}}

{{/* What the sidecar and the pod have once for each container that calls it. */}}
{{- define "sidekeeper.each.argument" -}}
--listen=unix:///run/sidekeeper-sockets/{{ .container }}/sidekeeper.sock{{ if .values.identities }}?identity={{ .container }}{{ end }}
{{- end -}}

{{- define "sidekeeper.each.containerVolumeMount" -}}
- name: sidekeeper-{{ . }}
  mountPath: /run/sidekeeper-sockets/{{ . }}
{{- end -}}

{{- define "sidekeeper.each.volume" -}}
{{- if or (gt (len .) 52) (has . (list "zookeeper-auth" "zookeeper-tls")) -}}
{{- fail (printf "containers: %q: a name of at most 52 characters, and neither zookeeper-auth nor zookeeper-tls" .) -}}
{{- end -}}
- name: sidekeeper-{{ . }}
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- end -}}

{{/*
What the injector adds to a pod, in JSON: all of the above without a container that calls the sidecar, and what comes with
each of those, for one by the name CONTAINER, which no real one can have. Takes the values.
*/}}
{{- define "sidekeeper.pattern" -}}
{{- $none := dict "values" . "containers" list -}}
{{- $each := dict -}}
{{- $_ := set $each "argument" (include "sidekeeper.each.argument" (dict "values" . "container" "CONTAINER")) -}}
{{- $_ := set $each "containerVolumeMounts" (include "sidekeeper.each.containerVolumeMount" "CONTAINER" | fromYamlArray) -}}
{{- $_ := set $each "volumes" (include "sidekeeper.each.volume" "CONTAINER" | fromYamlArray) -}}
{{- $_ := set $each "volumeMounts" (include "sidekeeper.volumeMounts" "CONTAINER" | fromYamlArray) -}}
{{- $_ := set $each "env" (include "sidekeeper.env" . | fromYamlArray) -}}
{{- $pattern := dict "each" $each "annotations" .injector.annotations -}}
{{- $_ := set $pattern "container" (include "sidekeeper.container" $none | fromYamlArray | first) -}}
{{- $_ := set $pattern "volumes" (include "sidekeeper.volumes" $none | fromYamlArray) -}}
{{- $_ := set $pattern "labels" (include "sidekeeper.labels" . | fromYaml) -}}
{{- if .injector.rootPerNamespace -}}
{{- range $setting := .injector.annotations }}{{ if hasSuffix "root" $setting -}}
{{- fail (printf "injector.annotations: %s cannot be chosen by pods with injector.rootPerNamespace" $setting) -}}
{{- end }}{{ end -}}
{{- $_ := set $pattern "rootPerNamespace" (.settings.root | default "/sidekeeper") -}}
{{- end -}}
{{- toPrettyJson $pattern -}}
{{- end -}}
