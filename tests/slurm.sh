#!/usr/bin/env bash
# A Slurm cluster of this machine alone, for tests: tests/slurm.sh start FOLDER | stop FOLDER
#
# All it has is in FOLDER, an absolute path; its users say SLURM_CONF=FOLDER/slurm.conf. It needs root, but neither
# systemd nor cgroups nor accounting. A job in the partition `preempt` gives way to one in `main`: it is requeued.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
action=${1:-} folder=${2:-}
export SLURM_CONF=$folder/slurm.conf

daemons="slurmd slurmctld munged" # in the order in which they are stopped

running() {
  local name pid
  for name in "$@"; do
    pid=$(cat "$folder/$name.pid" 2>/dev/null) && [ "$(ps -o comm= -p "$pid")" = "$name" ] || return 1
  done
}

start() {
  for program in $daemons sbatch; do
    command -v $program >/dev/null || { echo "there is no $program: apt install slurm-wlm munge" >&2; exit 3; }
  done
  if running $daemons; then return; fi
  stop # what a start that failed has left
  mkdir -p "$folder"/{state,spool}
  configure
  head -c 1024 /dev/urandom >"$folder/munge.key"
  chmod 600 "$folder/munge.key"
  # --force: munged distrusts folders that others may write to, such as /tmp.
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" 2>/dev/null
  slurmctld -c
  slurmd
  for _ in $(seq 150); do
    if running $daemons && [ "$(sinfo --noheader --partition=main --format=%T)" = idle ]; then return; fi
    sleep 0.2
  done
  echo "the cluster did not start; the logs are in $folder" >&2
  exit 1
}

# More CPUs are declared than there may be, and GPUs that are not there; intervals are as short as Slurm allows.
# cred_expire: so long Slurm waits before it starts a requeued job again, by default two minutes.
configure() {
  local name port
  name=$(hostname -s) port=$((20000 + RANDOM % 5000 * 2))
  cat >"$SLURM_CONF" <<END
ClusterName=tests
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=10
ReturnToService=2
GresTypes=gpu
NodeName=$name NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES PriorityTier=2
PartitionName=preempt Nodes=ALL PriorityTier=1
END
  echo "Name=gpu File=/dev/null,/dev/zero" >"$folder/gres.conf"
}

# Jobs first: they would outlive the daemons.
stop() {
  local name
  if running slurmctld; then
    squeue --noheader --format=%A | xargs --no-run-if-empty scancel --full --signal=KILL || true
    squeue --noheader --format=%A | xargs --no-run-if-empty scancel || true
    for _ in $(seq 100); do
      [ -n "$(squeue --noheader)" ] || break
      sleep 0.2
    done
  fi
  for name in $daemons; do
    running $name || continue
    kill "$(<"$folder/$name.pid")"
    while running $name; do sleep 0.1; done
  done
}

case $action:$folder in
  start:/* | stop:/*) $action ;;
  *) echo "usage: $0 start|stop FOLDER, an absolute path" >&2; exit 2 ;;
esac
