{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "stagecoach.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "stagecoach.pull" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- /* Without any privilege. */ -}}
{{- define "stagecoach.unprivileged" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- /* What all containers of a controller's machine see. */ -}}
{{- define "stagecoach.machine" -}}
env:
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
# There is no service manager.  With the variable the databases have the guards
# that keep sound copies of their files.
- name: NOTIFY_SOCKET
  value: /dev/null
volumeMounts:
- name: data
  mountPath: /var/lib/stagecoach
- name: run
  mountPath: /run/stagecoach/controller
- name: tls
  mountPath: /etc/stagecoach/tls
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- /* Like the watchdogs of the systemd units: ends what does not answer. */ -}}
{{- define "stagecoach.alive" -}}
periodSeconds: 10
timeoutSeconds: 6
failureThreshold: 2
{{- end -}}
