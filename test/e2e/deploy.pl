# What is deployed with: the systemd unit is one, as far as a machine without a service manager can
# tell, and the container's files name what there is. No engine runs here.
use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use JSON::PP qw(decode_json);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Program;

my $folder = 'worker/deploy';

sub has_tool { return system("command -v $_[0] >/dev/null 2>&1") == 0 }

subtest 'the systemd unit' => sub {
    plan skip_all => 'no systemd-analyze here' if !has_tool('systemd-analyze');
    my $unit = slurp_file("$folder/pulse-worker\@.service");
    my $program = (run_command([ 'which', 'pulse-worker' ]))[0];
    $unit =~ s{^ExecStart=\S+}{ExecStart=$program}m;
    my $copy = PostgreSQL::Test::Utils::tempdir_short() . '/pulse-worker@mail.service';
    append_to_file($copy, $unit);
    my ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'systemd has nothing to say of it');
    unlike($unit, qr/^Documentation=file:/m, 'it names no file that is not installed');
    like($unit, qr/^KillMode=mixed$/m, 'a stop is told to the worker alone');
    my ($grace) = $unit =~ /--grace (\d+)s/;
    my ($limit) = $unit =~ /^TimeoutStopSec=(\d+)s$/m;
    cmp_ok($limit, '>', $grace + 7, 'which has its grace, and time to end what does not');
    mkdir "$copy.d" or die "$copy.d: $!\n";
    copy("$folder/relaxed.conf", "$copy.d/relaxed.conf") or die "relaxed.conf: $!\n";
    ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', $copy ]);
    is("$out$err", '', 'nor of the relaxed drop-in');
};

subtest 'the Dockerfile' => sub {
    my $text = slurp_file("$folder/Dockerfile");
    $text =~ s/\\\n//g;
    my (%stage, $last);
    for my $line (grep { /^[A-Z]/ } split /\n/, $text) {
        if ($line =~ /^FROM (\S+) AS (\w+)$/) { $last = $stage{$2} = { from => $1 } }
        $last->{user} = $1 if $line =~ /^USER (\S+)$/;
        if (my ($from, $source) = $line =~ /^COPY (?:--from=(\w+) )?(\S+)/) {
            ok(defined $from ? $stage{$from} : -e $source, "there is what '$line' copies");
            next if !defined $from;
            next if $ENV{PULSE_STAGE} eq '/';    # of a server that is not the image's
            my ($staged) = $source =~ m{^/stage(/.+)$};
            ok(-e "$ENV{PULSE_STAGE}$staged", "$staged is installed");
        }
    }
    is($stage{worker}{user}, 'pulse', 'the worker is not root');
    like($text, qr/^STOPSIGNAL SIGTERM$/m, 'it is told to stop by what it takes for that');
};

subtest 'the compose file' => sub {
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my $services = (documents("$folder/compose.yaml"))[0]{services};
    is_deeply([ sort keys %$services ], [ 'database', 'worker' ], 'a database and a worker');
    my $targets = join '|', slurp_file("$folder/Dockerfile") =~ /^FROM \S+ AS (\w+)$/mg;
    for my $name (sort keys %$services) {
        my $build = $services->{$name}{build};
        ok(-e "$folder/$build->{context}/$build->{dockerfile}", "$name: its Dockerfile");
        like($build->{target}, qr/^(?:$targets)$/, "$name: its stage");
    }
    my ($tasks) = $services->{worker}{volumes}[0] =~ /^([^:]+):/;
    ok(scalar(grep { -f && -x } glob "$folder/$tasks/*"), 'a task for its worker');
    ok(-e "$folder/create.sql", 'the script that creates the extension');
    is($services->{worker}{depends_on}{database}{condition}, 'service_healthy', 'one by one');
};

# The documents of a YAML file.
sub documents {
    my ($file) = @_;
    my $read = 'import json, sys, yaml; '
      . 'json.dump(list(yaml.safe_load_all(open(sys.argv[1]))), sys.stdout)';
    my ($json) = run_command([ 'python3', '-c', $read, $file ]);
    return @{ decode_json($json) };
}

# A worker of the image, with the container's arguments, that finds no database.
sub start_without_database {
    my ($entry, @arguments) = @_;
    my $tasks = PostgreSQL::Test::Utils::tempdir('tasks');
    copy("$folder/tasks/greet", "$tasks/greet") or die "greet: $!\n";
    chmod 0755, $tasks, "$tasks/greet";
    my %local = ('--tasks' => $tasks, '--http' => '127.0.0.1:0');
    my $option = '';
    my @here = map { my $word = $local{$option} // $_; $option = $_; $word } @$entry;
    my $worker = Pulse::Program->start('pod', [ @here, @arguments, '-d', 'host=/nowhere' ],
        output => 'stderr');
    my $serving = $worker->lines->wait_for('its address', sub { $_[0] =~ /"serving"/ });
    return ($worker, $serving =~ /127\.0\.0\.1:(\d+)/);
}

subtest 'the Kubernetes manifest' => sub {
    plan skip_all => 'no yaml for Python here' if system("python3 -c 'import yaml' 2>/dev/null");
    my ($deployment, $budget) = documents("$folder/kubernetes.yaml");
    my $labels = $deployment->{spec}{template}{metadata}{labels};
    my $pod = $deployment->{spec}{template}{spec};
    my $container = $pod->{containers}[0];
    my $docker = slurp_file("$folder/Dockerfile");
    is_deeply($_->{spec}{selector}{matchLabels}, $labels, "$_->{kind}: selects these pods")
      for $deployment, $budget;
    my ($grace) = "@{ $container->{args} }" =~ /--grace (\d+)s/;
    cmp_ok($pod->{terminationGracePeriodSeconds}, '>=', $grace + 15,
        'a stop has the grace of the worker, and time to end what does not');
    ok($pod->{securityContext}{runAsNonRoot} && $pod->{securityContext}{runAsUser},
        'its user is no root, by number');
    my ($port) = $docker =~ /^EXPOSE (\d+)$/m;
    is($container->{ports}[0]{containerPort}, $port, 'the port is the one of the image');
    is($deployment->{spec}{template}{metadata}{annotations}{'prometheus.io/port'}, $port,
        'which is scraped');
    my ($entry) = $docker =~ /^ENTRYPOINT (\[.*\])$/m;
    my ($worker, $served) = start_without_database(decode_json($entry), @{ $container->{args} });
    my %answers = (livenessProbe => 200, readinessProbe => 503);
    for my $probe (sort keys %answers) {
        my $get = $container->{$probe}{httpGet};
        is($get->{port}, $container->{ports}[0]{name}, "$probe: the port");
        my ($code) = run_command([ qw(curl -s -o /dev/null -w %{http_code}),
            "http://127.0.0.1:$served$get->{path}" ]);
        is($code, $answers{$probe}, "$probe: $get->{path} says $code while the database is away");
    }
    $worker->signal('TERM');
    like($worker->wait_exit, qr/^(?:0|75)$/, 'its arguments are understood, and it ends when told');
};

done_testing();
