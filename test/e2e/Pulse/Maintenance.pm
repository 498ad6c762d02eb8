# What a DBA does to tables of a schema, as statements: each kind once for each table, and those
# that name no table. A kind leaves the table as it was.
package Pulse::Maintenance;

use strict;
use warnings FATAL => 'all';

use List::Util qw(shuffle);

use Pulse::Server qw(value);

use constant {
    MINE => 'dba_own',           # the name of all that the DBA makes
    TABLESPACE => 'dba_other',
};

# Of each table: statements in their order. Where a list is empty, the table cannot be treated so.
my %of_table = (
    'reindex' => sub { "REINDEX TABLE $_[0]{name}" },
    'reindex concurrently' => sub { "REINDEX TABLE CONCURRENTLY $_[0]{name}" },
    'vacuum full' => sub { "VACUUM FULL $_[0]{name}" },
    'vacuum' => sub { "VACUUM (FREEZE) $_[0]{name}" },
    'analyze' => sub { "ANALYZE $_[0]{name}" },
    'cluster' => \&_cluster,
    'fillfactor' => sub { _alter($_[0], 'SET (fillfactor = 85)', _as_before($_[0])) },
    'autovacuum' => sub {
        _alter($_[0], 'SET (autovacuum_vacuum_threshold = 10)', _as_before($_[0])) },
    'index' => sub {
        ("CREATE INDEX @{[MINE]} ON $_[0]{name} ($_[0]{column})", "DROP INDEX pulse.@{[MINE]}") },
    'index concurrently' => sub {
        ("CREATE INDEX CONCURRENTLY @{[MINE]} ON $_[0]{name} ($_[0]{last_column})",
            "DROP INDEX CONCURRENTLY pulse.@{[MINE]}") },
    'statistics' => \&_statistics,
    'tablespace' => sub {
        _alter($_[0], 'SET TABLESPACE ' . TABLESPACE, 'SET TABLESPACE pg_default') },
    'triggers' => \&_triggers,
    'audit' => sub {
        ("CREATE TRIGGER @{[MINE]} AFTER INSERT OR UPDATE OR DELETE ON $_[0]{name}
            FOR EACH ROW EXECUTE FUNCTION app.audit()", "DROP TRIGGER @{[MINE]} ON $_[0]{name}") },
    'constraint' => sub {
        _alter($_[0], "ADD CONSTRAINT @{[MINE]} CHECK ($_[0]{column} IS NOT NULL) NOT VALID",
            "VALIDATE CONSTRAINT @{[MINE]}", "DROP CONSTRAINT @{[MINE]}") },
);

my @of_all = (
    'REINDEX SCHEMA pulse', 'REINDEX SCHEMA CONCURRENTLY pulse',
    'REINDEX DATABASE CONCURRENTLY postgres', 'VACUUM', 'VACUUM FULL', 'ANALYZE',
);

sub new {
    my ($class, $node) = @_;
    my $self = bless { node => $node }, $class;
    # In place, so that a standby on the same machine has its own.
    $node->safe_psql('postgres', 'SET allow_in_place_tablespaces = on;
        CREATE TABLESPACE ' . TABLESPACE . " LOCATION ''");
    $self->{tables} = [ map { $self->_table($_) } split /\n/, value($node, q{
        SELECT relname FROM pg_class WHERE relnamespace = 'pulse'::regnamespace
           AND relkind = 'r'}) ];
    return $self;
}

sub _table {
    my ($self, $name) = @_;
    my $of = "'pulse.$name'::regclass";
    my @columns = split /\n/, value($self->{node}, qq{
        SELECT quote_ident(attname) FROM pg_attribute
         WHERE attrelid = $of AND attnum > 0 AND atttypid <> 'json'::regtype ORDER BY attnum});
    my $key = value($self->{node}, qq{
        SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
         WHERE indrelid = $of AND indpred IS NULL LIMIT 1});
    my $options = value($self->{node}, qq{
        SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = $of});
    my $always = value($self->{node}, qq{
        SELECT string_agg('ENABLE ALWAYS TRIGGER ' || quote_ident(tgname), ', ')
          FROM pg_trigger WHERE tgrelid = $of AND tgenabled = 'A'});
    return { name => "pulse.$name", column => $columns[0], last_column => $columns[-1],
        key => $key, options => $options, always => $always };
}

sub tables { return map { $_->{name} } @{ $_[0]{tables} } }

sub _alter {
    my ($table, @changes) = @_;
    return map { "ALTER TABLE $table->{name} $_" } @changes;
}

sub _as_before {
    my ($table) = @_;
    return ('RESET (fillfactor, autovacuum_vacuum_threshold)',
        $table->{options} ? "SET ($table->{options})" : ());
}

sub _cluster {
    my ($table) = @_;
    return if !$table->{key};
    return ("CLUSTER $table->{name} USING $table->{key}",
        "ALTER TABLE $table->{name} SET WITHOUT CLUSTER");
}

# A planner that has read their number, and then misses them, raises an error: so that no session
# plans a query on the table while they go, its lock comes first.
sub _statistics {
    my ($table) = @_;
    return if $table->{column} eq $table->{last_column};
    return ("CREATE STATISTICS pulse.@{[MINE]} ON $table->{column}, $table->{last_column}
        FROM $table->{name}", "ANALYZE $table->{name}",
        "DO 'BEGIN LOCK TABLE $table->{name}; DROP STATISTICS pulse.@{[MINE]}; END'");
}

# ENABLE TRIGGER forgets which triggers were to fire always.
sub _triggers {
    my ($table) = @_;
    return _alter($table, 'DISABLE TRIGGER USER', 'ENABLE TRIGGER USER',
        $table->{always} || ());
}

# In random order: [ statement, … ] of each.
sub round {
    my ($self) = @_;
    my @round = map { [$_] } @of_all;
    for my $table (@{ $self->{tables} }) {
        push @round, grep { @$_ } map { [ $_->($table) ] } values %of_table;
    }
    return shuffle(@round);
}

# A column more, for good: a column that is dropped leaves its number behind.
sub new_columns {
    my ($self) = @_;
    return map { "ALTER TABLE $_ ADD COLUMN @{[MINE]} int" } $self->tables;
}

1;
