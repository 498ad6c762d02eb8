# Three servers under Patroni, with etcd and haproxy, on addresses and ports of their own, from the
# files of worker/deploy/patroni: what an operator copies is what is tested.
package Pulse::Patroni;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use IPC::Run ();
use JSON::PP qw(decode_json);
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster ();
use PostgreSQL::Test::Utils qw(slurp_file append_to_file);
use Pulse::Lines;
use Pulse::Process;
use Pulse::Program;
use Pulse::Server qw(server_folder);

use constant { NODES => 3, PATIENCE => 120 };

my $folder = 'worker/deploy/patroni';
my @programs = qw(patroni patronictl etcd haproxy);
my @started;

# The programs that this machine lacks.
sub missing {
    return grep { system("command -v $_ >/dev/null 2>&1") != 0 } @programs;
}

# A file of the recipe with the addresses and ports of this test.
sub _filled {
    my ($self, $name, $number) = @_;
    my $text = slurp_file("$folder/$name");
    $text =~ s/10\.0\.0\.0\/24/127.0.0.0\/8/g;
    # The node's own address stands where the file of the first node has the first one.
    $text =~ s/((?:listen|connect_address|_URLS)[:=]\s*(?:http:\/\/)?10\.0\.0\.)1/$1$number/g;
    $text =~ s/10\.0\.0\.(\d)/127.0.$self->{net}.$1/g;
    $text =~ s/(?<=[:,= ])\Q$_\E(?=[\s,]|$)/$self->{port}{$_}/gm for sort keys %{ $self->{port} };
    $text =~ s/^(name: |ETCD_NAME=)node1$/$1node$number/m;
    return $text;
}

sub _write {
    my ($self, $name, $text) = @_;
    my $path = "$self->{root}/$name";
    unlink $path;
    append_to_file($path, $text);
    chmod 0600, $path;
    return $path;
}

sub start {
    my ($class, %options) = @_;
    my $self = bless {
        root => PostgreSQL::Test::Utils::tempdir('patroni'),
        socket => PostgreSQL::Test::Utils::tempdir_short(),
        # Of its own, so that two tests at once do not meet.
        net => 1 + $$ % 250,
        starts => 0,
        program => {},
    }, $class;
    push @started, $self;
    $self->{port}{$_} = PostgreSQL::Test::Cluster::get_free_port()
      for qw(5432 8008 2379 2380 5000);
    $self->start_etcd;
    $self->_configure($_, $options{settings} // {}) for 1 .. NODES;
    $self->start_node($_) for 1 .. NODES;
    $self->wait_for('three nodes that stream', sub { $self->is_whole });
    $self->_start_haproxy;
    return $self;
}

# One etcd stands for three: what is tested is its absence.
sub start_etcd {
    my ($self) = @_;
    my $environment = $self->_filled('etcd.env', 1);
    $environment =~ s{^(ETCD_DATA_DIR)=.*}{$1=$self->{root}/etcd}m;
    $environment =~ s{^(ETCD_INITIAL_CLUSTER=node1=[^,\n]*).*}{$1}m;
    my @variables = grep { /^ETCD_/ } split /\n/, $environment;
    $self->{program}{etcd} = Pulse::Program->start('etcd' . ++$self->{starts},
        [ 'env', 'ETCD_UNSUPPORTED_ARCH=arm64', @variables, 'etcd' ]);
    return;
}

sub stop_etcd { return $_[0]{program}{etcd}->kill }

sub _configure {
    my ($self, $number, $settings) = @_;
    my $text = $self->_filled('patroni.yml', $number);
    my $bindir = server_folder('bindir');
    $text =~ s{^(  data_dir:) .*}{$1 $self->{root}/data$number}m;
    $text =~ s{^(  bin_dir:) .*}{$1 $bindir}m;
    $text =~ s{^(  pgpass:) .*}{$1 $self->{root}/pgpass$number}m;
    my $socket = "$self->{socket}/$number";
    mkdir $socket;
    $text =~ s{^(    unix_socket_directories:) .*}{$1 $socket}m;
    # Where the server finds what is staged.
    my %place = slurp_file($ENV{TEMP_CONFIG}) =~ /^(\w+) = '(.*)'$/mg;
    delete $place{shared_preload_libraries};
    my %more = (%place, fsync => 'off', log_line_prefix => '%m [%p] %q%a ');
    $text .= join '', map { "    $_: '$more{$_}'\n" } sort keys %more;
    $text =~ s/^( +\Q$_\E:) .*/$1 $settings->{$_}/m for keys %{$settings};
    $self->{config}[$number] = $self->_write("patroni$number.yml", $text);
    return;
}

sub start_node {
    my ($self, $number) = @_;
    $self->{program}{$number} = Pulse::Program->start("patroni$number-" . ++$self->{starts},
        [ 'patroni', $self->{config}[$number] ], output => 'stderr');
    return;
}

sub _start_haproxy {
    my ($self) = @_;
    my $path = $self->_write('haproxy.cfg', $self->_filled('haproxy.cfg', 1));
    $self->{program}{haproxy} =
      Pulse::Program->start('haproxy', [ 'haproxy', '-db', '-f', $path ]);
    return;
}

# Patroni's list of members, or nothing while nobody answers.
sub members {
    my ($self) = @_;
    for my $number (1 .. NODES) {
        my $address = "127.0.$self->{net}.$number:$self->{port}{8008}";
        my $text = `curl -s -m 2 http://$address/cluster 2>/dev/null`;
        my $cluster = eval { decode_json($text) } or next;
        return @{ $cluster->{members} };
    }
    return;
}

# A leader that takes writes, and standbys that stream from it.
sub is_whole {
    my ($self) = @_;
    my @members = $self->members;
    my @leaders = grep { $_->{role} eq 'leader' && $_->{state} eq 'running' } @members;
    return if @leaders != 1 || @members != NODES;
    my $timeline = $leaders[0]{timeline} // return;
    for my $member (grep { $_->{role} ne 'leader' } @members) {
        return if $member->{state} !~ /^(?:running|streaming)$/;
        return if ($member->{timeline} // 0) != $timeline;
    }
    return ($self->value('SELECT count(*) FROM pg_stat_replication
        WHERE state = $$streaming$$') // '') eq NODES - 1;
}

sub leader {
    my ($self) = @_;
    my ($leader) = grep { $_->{role} eq 'leader' } $self->members;
    return $leader && $leader->{name} =~ /(\d)$/ ? $1 : undef;
}

sub wait_for {
    my ($self, $what, $is) = @_;
    my $end = time + PATIENCE;
    until ($is->()) {
        croak "never: $what" if time > $end;
        Time::HiRes::sleep(0.2);
    }
    return;
}

sub hosts {
    my ($self) = @_;
    return join ',', map { "127.0.$self->{net}.$_" } 1 .. NODES;
}

# A connection string of the node that takes writes: by libpq, or by haproxy.
sub by_dsn {
    my ($self, $user, $database) = @_;
    my $ports = join ',', ($self->{port}{5432}) x NODES;
    return 'host=' . $self->hosts . " port=$ports dbname=$database user=$user password=change-me"
      . ' target_session_attrs=read-write connect_timeout=2';
}

sub by_haproxy {
    my ($self, $user, $database) = @_;
    return "host=127.0.$self->{net}.1 port=$self->{port}{5000} dbname=$database user=$user"
      . ' password=change-me connect_timeout=2';
}

# The answer of the primary as the superuser; undefined without one.
sub value {
    my ($self, $query, $database) = @_;
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
            $self->by_dsn('postgres', $database // 'postgres'), '-c', $query ],
        '>', \$out, '2>', \$err) or do { $self->{error} = $err; return };
    chomp $out;
    return $out;
}

sub error { return $_[0]{error} }

sub patronictl {
    my ($self, @arguments) = @_;
    my ($out, $err) = ('', '');
    IPC::Run::run([ 'patronictl', '-c', $self->{config}[1], @arguments ], '<', \undef,
        '>', \$out, '2>', \$err) or croak "patronictl @arguments: $out$err";
    return $out;
}

sub postmaster {
    my ($self, $number) = @_;
    my ($pid) = split /\n/, slurp_file("$self->{root}/data$number/postmaster.pid");
    return $pid;
}

# kill -9 of the server, with its Patroni left alive.
sub kill_postmaster {
    my ($self, $number) = @_;
    kill 'KILL', $self->postmaster($number);
    return;
}

# As if the machine were gone: nothing of it answers or ends in order.
sub kill_node {
    my ($self, $number) = @_;
    my $postmaster = $self->postmaster($number);
    kill 'STOP', $postmaster;
    my @family = Pulse::Process->family($postmaster);
    $self->{program}{$number}->kill;
    kill 'KILL', map { $_->pid } @family;
    $_->wait_gone or croak 'a backend survives' for @family;
    return;
}

# Standbys receive nothing more; what is committed from now on is on one machine.
sub deafen_standbys {
    my ($self, $number) = @_;
    my @senders = split /\n/, $self->value('SELECT pid FROM pg_stat_replication') // '';
    kill 'STOP', @senders;
    return;
}

sub log_of {
    my ($self, $number) = @_;
    return join "\n", map { slurp_file($_) } glob "$self->{root}/data$number/log/*.log";
}

sub stop {
    my ($self) = @_;
    for my $number (1 .. NODES) {
        next if !$self->{program}{$number} || $self->{program}{$number}->has_ended;
        $self->{program}{$number}->signal('TERM');
        $self->{program}{$number}->wait_exit;
    }
    $_->kill for grep { !$_->has_ended } @{ $self->{program} }{qw(haproxy etcd)};
    return;
}

# A server outlives its Patroni.
END {
    my $status = $?;
    for my $pid (map { glob "$_->{root}/data*/postmaster.pid" } @started) {
        my ($postmaster) = split /\n/, slurp_file($pid);
        kill 'KILL', map { $_->pid } Pulse::Process->family($postmaster);
    }
    $? = $status;
}

1;
