# One session of psql: a worker that speaks SQL, or whoever else a test needs to stay connected.
package Pulse::Session;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);

sub new {
    my ($class, $node, %options) = @_;
    my $psql = $node->background_psql($options{database} // 'postgres', on_error_stop => 0);
    my $self = bless { psql => $psql, asked => 0 }, $class;
    $self->query('\set VERBOSITY verbose');
    # Now, because a session that waits for an answer can be asked nothing else.
    $self->{backend_pid} = $self->query('SELECT pg_backend_pid()');
    return $self;
}

# What is waited for has its time from now on; else all that a session does would share it.
sub _start_timer {
    my ($self) = @_;
    $self->{psql}{timeout}->start;
    return;
}

# Sends without waiting for the answer.
sub ask {
    my ($self, $query) = @_;
    my $psql = $self->{psql};
    $self->_start_timer;
    my $banner = 'answered ' . ++$self->{asked};
    $psql->{stdout} = $psql->{stderr} = '';
    $psql->{stdin} .= "$query\n;\n\\echo '$banner'\n\\warn '$banner'\n";
    # Until all of the query is on its way: a test may ask and not come back for the answer.
    do { $psql->{run}->pump_nb } while length $psql->{stdin};
    $self->{banner} = $banner;
    return;
}

# A timer that the server no longer needs rings nevertheless, and makes a wait look up as if
# somebody had woken it: after ten seconds that by which an idle session reports its statistics,
# after sixty that of its start. A sooner timer takes the place of both, and rings before the wait.
# That of the check of the client is one that cancels nothing, however late the processor is. Each
# message reports its statistics at once, so that the idle moment behind it starts no timer anew.
my $report = <<'SQL';
  IF current_setting('server_version_num')::int >= 150000 THEN
    PERFORM pg_stat_force_next_flush();
  END IF;
SQL
my $calm = <<"SQL";
DO \$\$
BEGIN
  SET client_connection_check_interval = '20ms';
$report
END \$\$;
DO \$\$
BEGIN
  SET client_connection_check_interval = 0;
  WHILE clock_timestamp() < statement_timestamp() + interval '50 ms' LOOP
  END LOOP;
  RESET client_connection_check_interval;
$report
END \$\$;
SQL

# Sends a call that waits: only what the call waits for ends the wait.
sub ask_to_wait {
    my ($self, $call) = @_;
    return $self->ask($calm . $call);
}

# Waits for the answer; what the server said beside it is in said().
sub answer {
    my ($self) = @_;
    my $psql = $self->{psql};
    my $banner = qr/$self->{banner}\r?\n/;
    $self->_start_timer;
    until ($psql->{stdout} =~ $banner && $psql->{stderr} =~ $banner) {
        $psql->{run}->pump;
        croak "no answer in time; so far: $psql->{stdout}$psql->{stderr}"
          if $psql->{timeout}->is_expired;
    }
    ($self->{said} = $psql->{stderr}) =~ s/$banner//;
    (my $answer = $psql->{stdout}) =~ s/\n?$banner//;
    return $answer;
}

sub has_answered {
    my ($self) = @_;
    $self->_start_timer;
    $self->{psql}{run}->pump_nb;
    return $self->{psql}{stdout} =~ /$self->{banner}\r?\n/ ? 1 : 0;
}

sub said { return $_[0]{said} }

# The answer, whatever it is.
sub try {
    my ($self, $query) = @_;
    $self->ask($query);
    return $self->answer;
}

# The answer of a query that must succeed.
sub query {
    my ($self, $query) = @_;
    my $answer = $self->try($query);
    croak "$query: $self->{said}" if $self->{said} =~ /ERROR|FATAL/;
    return $answer;
}

# The SQLSTATE with which a query is refused, or what it answered instead.
sub refusal {
    my ($self, $query) = @_;
    my $answer = $self->try($query);
    return $self->{said} =~ /(?:ERROR|FATAL):  (\w{5}):/ ? $1 : "no refusal but '$answer'";
}

sub backend_pid { return $_[0]{backend_pid} }

# To the client.
sub signal {
    my ($self, $signal) = @_;
    $self->{psql}{run}->signal($signal);
    return;
}

# As a crash of the client.
sub kill {
    my ($self) = @_;
    my $run = $self->{psql}{run};
    $run->signal('KILL');
    eval { $run->finish };
    return;
}

# The client says good-bye. Its backend may have gone before.
sub quit {
    my ($self) = @_;
    $self->_start_timer;
    eval { $self->{psql}->quit };
    return;
}

1;
