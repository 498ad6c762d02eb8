-- The schema belongs to the extension, so one of this name is an error.
CREATE SCHEMA pulse_citus;
COMMENT ON SCHEMA pulse_citus IS
  'Functions of pg_pulse over a cluster of Citus: a job lives on the node of its shard key.';

-- Names of schedules are names of the whole cluster; only the coordinator has rows here.
CREATE TABLE pulse_citus.schedule_home (
  name      text PRIMARY KEY,
  shard_key text NOT NULL
);
COMMENT ON TABLE pulse_citus.schedule_home IS
  'The shard key of each schedule; the schedule is on the node of the key. Dumped.';
COMMENT ON COLUMN pulse_citus.schedule_home.name IS 'Name of the schedule';
COMMENT ON COLUMN pulse_citus.schedule_home.shard_key IS
  'The key; its node has the schedule, and each job of the schedule';
SELECT pg_extension_config_dump('pulse_citus.schedule_home', '');
