{{/* The name of what the injector consists of. */}}
{{- define "sidekeeper.injector.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "sidekeeper" $name) -}}
{{- $name = printf "%s-sidekeeper" $name -}}
{{- end -}}
{{- printf "%s-injector" ($name | trunc 50 | trimSuffix "-") -}}
{{- end -}}

{{/* Labels of everything that the chart installs. Takes the root context. */}}
{{- define "sidekeeper.chart.labels" -}}
app.kubernetes.io/name: sidekeeper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What tells the injector's pods from others. Takes the root context. */}}
{{- define "sidekeeper.injector.selector" -}}
app.kubernetes.io/name: sidekeeper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: injector
{{- end -}}

{{/* The labels that somebody's Prometheus or Grafana looks for, beside the chart's. Takes (dict "root" $ "labels" {…}). */}}
{{- define "sidekeeper.found.labels" -}}
{{ include "sidekeeper.chart.labels" .root }}
{{- with .labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The reference of the image, by digest if one is given. Takes the values. */}}
{{- define "sidekeeper.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag }}
{{- end -}}
{{- end -}}
