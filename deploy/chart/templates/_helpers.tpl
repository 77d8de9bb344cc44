{{- define "nornweave.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "nornweave.labels" -}}
app.kubernetes.io/name: nornweave
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nornweave.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "nornweave.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "nornweave.mounts" -}}
- {name: settings, mountPath: /etc/nornweave}
- {name: work, mountPath: /var/lib/nornweave}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "nornweave.volumes" -}}
- name: settings
  configMap: {name: {{ .Release.Name }}}
- name: tmp
  emptyDir: {}
{{- end }}

{{- define "nornweave.work" -}}
- name: work
  emptyDir: {}
{{- end }}

{{- /* Variables of every process; those of secrets are by role. */ -}}
{{- define "nornweave.env" -}}
NORNWEAVE_CONFIG: /etc/nornweave/nornweave.yaml
XDG_CACHE_HOME: /var/lib/nornweave/.cache
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The pod of a role: root, role, secrets, args; further fields of its container in "container". */ -}}
{{- define "nornweave.pod" -}}
{{- $role := index .root.Values .role -}}
metadata:
  labels:
    {{- include "nornweave.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  annotations: {checksum/configuration: {{ include "nornweave.configuration" .root | sha256sum }}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 180
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{ include "nornweave.podSecurity" .root | nindent 4 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: {matchLabels: {app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .role }}}}
  {{- with $role.pod }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ .role }}
      image: {{ include "nornweave.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      {{- .container | nindent 6 }}
      envFrom:
        {{- range concat .secrets $role.secrets }}
        - secretRef: {name: {{ . }}}
        {{- end }}
      env:
        {{- range $name, $value := include "nornweave.env" .root | fromYaml }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      securityContext: {{ include "nornweave.security" .root | nindent 8 }}
      resources: {{ toYaml $role.resources | nindent 8 }}
      volumeMounts: {{ include "nornweave.mounts" .root | nindent 8 }}
  volumes:
    {{- include "nornweave.volumes" .root | nindent 4 }}
    {{- if ne .role "api" }}
    {{- include "nornweave.work" .root | nindent 4 }}
    {{- end }}
{{- end }}

{{- /* A process without a port touches a file while it works, or waits for its turn. */ -}}
{{- define "nornweave.alive" -}}
exec: {command: [sh, -c, 'test -n "$(find /var/lib/nornweave/alive -mmin -{{ . }})"']}
{{- end }}

{{- /* nornweave.yaml. */ -}}
{{- define "nornweave.configuration" -}}
{{- $own := dict
  "data_dir" "/var/lib/nornweave"
  "sources" .Values.sources
  "publish" (dict "url" .Values.objectStore.published)
  "workers" (dict "objects" .Values.objectStore.workers "leases" true)
}}
{{- mergeOverwrite $own (deepCopy .Values.configuration) | toYaml }}
{{- end }}
